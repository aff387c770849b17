/* Runs a program for AVR on rows that come from standard input, in simavr: runner ELF PART ROW N FOUND M STACK

   The program writes 1 to GPIOR0, whereupon a row of N bytes is put to the address ROW; 2 when it has predicted it, and
   3 when M bytes at FOUND are ready. Goes out, row by row: the cycles from 1 to 2 as 8 bytes, and these bytes. The first
   four bytes are those of RAM that the first prediction used above STACK, the end of all that is static. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <simavr/sim_avr.h>
#include <simavr/sim_elf.h>
#include <simavr/sim_io.h>

enum { GPIOR0 = 0x3E, SPL = 0x5D, PAINT = 0xA5 };
static struct {
    uint8_t *values;
    size_t row, n_row, found, n_found, stack, top;
    avr_cycle_count_t started, cycles;
    int n_done, is_over;
} run;

/* What happens between two instructions: simavr runs many of them in one call. */
static void on_mark(avr_t *avr, avr_io_addr_t address, uint8_t value, void *unused)
{
    (void)unused;
    uint8_t *ram = avr->data;
    ram[address] = value;
    if (value == 1) {
        memcpy(ram + run.row, run.values, run.n_row);
        if (run.n_done == 0) {
            run.top = ram[SPL] + 256u * ram[SPL + 1]; /* the stack grows down from here */
            memset(ram + run.stack, PAINT, run.top + 1 - run.stack);
        }
        run.started = avr->cycle;
    } else if (value == 2) {
        run.cycles = avr->cycle - run.started;
        if (run.n_done == 0) {
            size_t lowest = run.stack;
            while (lowest <= run.top && ram[lowest] == PAINT) {
                ++lowest;
            }
            const uint32_t used = (uint32_t)(run.top + 1 - lowest);
            fwrite(&used, sizeof used, 1, stdout);
        }
    } else {
        fwrite(&run.cycles, sizeof run.cycles, 1, stdout);
        fwrite(ram + run.found, run.n_found, 1, stdout);
        ++run.n_done;
        run.is_over = fread(run.values, run.n_row, 1, stdin) != 1;
    }
}

static void quiet(avr_t *avr, const int level, const char *format, va_list rest)
{
    (void)avr;
    if (level <= LOG_ERROR) {
        vfprintf(stderr, format, rest);
    }
}

int main(int n, char **words)
{
    if (n != 8) {
        return 2;
    }
    elf_firmware_t firmware;
    memset(&firmware, 0, sizeof firmware);
    avr_global_logger_set(quiet);
    if (elf_read_firmware(words[1], &firmware) != 0) {
        return 2;
    }
    avr_t *avr = avr_make_mcu_by_name(words[2]);
    if (!avr) {
        fprintf(stderr, "simavr knows no %s\n", words[2]);
        return 2;
    }
    avr_init(avr);
    avr->frequency = 16000000;
    avr_load_firmware(avr, &firmware);
    avr_register_io_write(avr, GPIOR0, on_mark, NULL);
    size_t *const numbers[] = {&run.row, &run.n_row, &run.found, &run.n_found, &run.stack};
    for (int k = 0; k < 5; ++k) {
        *numbers[k] = strtoul(words[3 + k], NULL, 0);
    }
    run.values = malloc(run.n_row);
    run.is_over = fread(run.values, run.n_row, 1, stdin) != 1;
    while (!run.is_over) {
        const int state = avr_run(avr);
        if (state == cpu_Done || state == cpu_Crashed) {
            fprintf(stderr, "the program stopped\n");
            return 1;
        }
    }
    return 0;
}
