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
    size_t readBytesUntil(char, char *text, size_t) { return text[0] = (char)*(volatile uint8_t *)0x3E, 1u; }
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
    size_t readBytesUntil(char last, char *text, size_t length)
    {
        size_t n = 0;
        for (int next = getchar(); next != EOF && next != last; next = getchar()) {
            text[n++] = (char)next;
            if (n == length) {
                break;
            }
        }
        return n;
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
