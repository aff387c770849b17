/* Stands in for Arduino.h: what the example uses. On AVR the serial port says nothing; elsewhere it is standard input
   and output, and the end of input ends the program. */
#ifndef STAND_IN_ARDUINO_H
#define STAND_IN_ARDUINO_H

#include <stdint.h>
#include <stdlib.h>

#ifndef __AVR__
#include <stdio.h>
#endif

struct SerialPort {
    void begin(unsigned long) {}
    void setTimeout(unsigned long) {}
#ifdef __AVR__
    int available() { return *(volatile uint8_t *)0x3E; }
    int read() { return *(volatile uint8_t *)0x3E; }
    float parseFloat() { return (float)read(); }
    void println(const char *text) { *(volatile uint8_t *)0x3E = (uint8_t)text[0]; }
#else
    int available()
    {
        const int next = getchar();
        if (next == EOF) {
            exit(0);
        }
        ungetc(next, stdin);
        return 1;
    }
    int read() { return getchar(); }
    float parseFloat()
    {
        float value = 0;
        return scanf("%f", &value) == 1 ? value : 0;
    }
    void println(const char *text) { puts(text); }
#endif
};
static SerialPort Serial;

void setup();
void loop();

int main()
{
    setup();
    for (;;) {
        loop();
    }
}

#endif
