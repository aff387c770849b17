/* What headers ask of avr-libc, on a machine whose flash is its memory. A name that is missing here is an error. */
#include <stdint.h>
#include <string.h>
#define PROGMEM
#define pgm_read_byte(pointer) (*(const uint8_t *)(pointer))
#define pgm_read_word(pointer) (*(const uint16_t *)(pointer))
#define pgm_read_dword(pointer) (*(const uint32_t *)(pointer))
#define pgm_read_float(pointer) (*(const float *)(pointer))
#define memcpy_P memcpy
