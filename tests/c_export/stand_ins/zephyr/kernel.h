/* Stands in for Zephyr's kernel.h: what the example uses, under the names and types that it has there. */
#ifndef STAND_IN_ZEPHYR_KERNEL_H
#define STAND_IN_ZEPHYR_KERNEL_H

#include <stddef.h>
#include <stdint.h>

#define ARRAY_SIZE(array) (sizeof(array) / sizeof((array)[0]))

#if __STDC_HOSTED__
#include <stdio.h>
#define printk printf
#else
void printk(const char *format, ...);
#endif

static inline uint32_t k_cycle_get_32(void)
{
    static uint32_t cycles;
    return ++cycles;
}

#endif
