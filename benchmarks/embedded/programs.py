"""Programs for microcontrollers around a classifier in C: linked, and measured in bytes.

A classifier is C code that defines `value`, `score`, `LENGTH`, `N_SCORES` and the functions `predict(row)`, which is
timed, and `get_scores(row, scores)`, which is not. Constants are marked with `FLASH` and read by `READ_8` and similar
macros, which are AVR's on AVR and empty elsewhere.
"""

import re
import subprocess
from dataclasses import dataclass
from pathlib import Path

from benchmarks.embedded.toolchain import prepare

LEVELS = ("-Os", "-O2")

PRELUDE = """#include <stdint.h>
#ifdef __AVR__
#include <avr/io.h>
#include <avr/pgmspace.h>
#define FLASH PROGMEM
#define READ_8(pointer) pgm_read_byte(pointer)
#define READ_16(pointer) pgm_read_word(pointer)
#define READ_32(pointer) pgm_read_dword(pointer)
#define READ_FLOAT(pointer) pgm_read_float(pointer)
#else
#define FLASH
#define READ_8(pointer) (*(pointer))
#define READ_16(pointer) (*(pointer))
#define READ_32(pointer) (*(pointer))
#define READ_FLOAT(pointer) (*(pointer))
#endif
"""

MAIN = """
#define APART __attribute__((noinline, noclone, used))
struct found { score scores[N_SCORES]; int16_t label; };
value given[LENGTH];
struct found found;
#ifdef NOTHING
APART int16_t timed(const value *row) { return row[0]; }
#else
APART int16_t timed(const value *row) { return predict(row); }
#endif
#if defined(NOTHING) || defined(ONLY_PREDICT)
APART void untimed(const value *row) { (void)row; }
#else
APART void untimed(const value *row) { get_scores(row, found.scores); }
#endif
#ifdef __AVR__
int main(void)
{
    for (;;) {
        GPIOR0 = 1;
        __asm__ volatile("" ::: "memory");
        const int16_t label = timed(given);
        __asm__ volatile("" ::: "memory");
        GPIOR0 = 2;
        found.label = label;
        untimed(given);
        GPIOR0 = 3;
    }
}
#else
void *memset(void *to, int byte, __SIZE_TYPE__ n);
void *memcpy(void *to, const void *from, __SIZE_TYPE__ n);
__attribute__((used)) void *memset(void *to, int byte, __SIZE_TYPE__ n)
{
    for (volatile unsigned char *at = to; n > 0; --n) *at++ = (unsigned char)byte;
    return to;
}
__attribute__((used)) void *memcpy(void *to, const void *from, __SIZE_TYPE__ n)
{
    const unsigned char *source = from;
    for (volatile unsigned char *at = to; n > 0; --n) *at++ = *source++;
    return to;
}
#endif
"""


@dataclass(frozen=True)
class Part:
    """A microcontroller: how it is compiled for, its memory, clock, and what a cycle costs."""

    name: str
    tool: str
    flags: tuple
    flash: int
    ram: int
    nanojoules: float
    megahertz: float = 16.0


#: Energy of a cycle: typical supply current of the datasheet, running from flash, times volts, by clock.
#: AVR: DS of ATmega164A to 1284P, ATmega324PA at 4 MHz and 3 V: 1.5 mA. M0+: STM32L081 (DS10888): 93 uA/MHz, at 3 V.
#: M3: STM32L100 (DocID024295), 16 MHz, range 2: 3.9 mA, at 3 V.
AVR = Part("ATmega1284P", "avr-gcc", ("-mmcu=atmega1284p",), 2**17, 2**14, 1.5e-3 * 3 / 4e6 * 1e9)
AVR_LARGE = Part("ATmega2560", "avr-gcc", ("-mmcu=atmega2560",), 2**18, 2**13, 1.5e-3 * 3 / 4e6 * 1e9)
ARM = ("-mthumb", "-ffreestanding", "-nostartfiles", "-nostdlib", "-Wl,--entry=timed", "-Wl,-Ttext=0x8000")
M0 = Part("Cortex-M0+", "arm-none-eabi-gcc", ("-mcpu=cortex-m0plus", *ARM), 2**18, 2**15, 93e-6 * 3 / 1e6 * 1e9)
M3 = Part("Cortex-M3", "arm-none-eabi-gcc", ("-mcpu=cortex-m3", *ARM), 2**18, 2**15, 3.9e-3 * 3 / 16e6 * 1e9)
PARTS = (AVR, M0, M3)


@dataclass(frozen=True)
class Program:
    """A linked program: its file, addresses of its names, and bytes of flash and of static RAM."""

    path: Path
    symbols: dict
    flash: int
    ram: int


class TooLarge(Exception):
    """A program does not fit its part."""


def build(source, part, level, folder, cache=None, macros=()):
    """Link a classifier with what runs it; raises TooLarge, or Missing if there is no compiler."""
    compiler = prepare(part.tool, cache)
    path = Path(folder, f"{part.name}{level}{''.join(macros)}.elf")
    Path(folder, "program.c").write_text(PRELUDE + source + MAIN)
    command = [
        str(compiler),
        *part.flags,
        "-std=gnu99",
        level,
        *macros,
        "-w",
        "-ffunction-sections",
        "-Wl,--gc-sections",
    ]
    command += ["-Wl,-u,timed", "-Wl,-u,untimed", "program.c", "-o", str(path), "-lgcc"]
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        if re.search(r"will not fit|overflowed|is not within region|too large", done.stderr):
            raise TooLarge(f"does not fit {part.name}")
        raise RuntimeError(done.stderr)
    prefix = str(compiler).removesuffix("gcc")
    nm, size = (_output([f"{prefix}{tool}", *flags, str(path)]) for tool, flags in (("nm", []), ("size", ["-A"])))
    symbols = {name: int(address, 16) for address, name in re.findall(r"^(\w+) \w (\w+)$", nm, re.MULTILINE)}
    sizes = {name: int(n) for name, n in re.findall(r"^(\.\w+)\S* +(\d+)", size, re.MULTILINE)}
    flash = sum(n for name, n in sizes.items() if name in (".text", ".data", ".rodata", ".ARM"))
    if flash > part.flash:
        raise TooLarge(f"takes {flash:,} bytes, and {part.name} has {part.flash:,}")
    return Program(path, symbols, flash, sum(sizes.get(name, 0) for name in (".data", ".bss")))


def classifier_bytes(source, part, level, folder, cache=None):
    """Return bytes of flash and of static RAM that the prediction of a classifier adds to a program without any."""
    with_it, without = (build(source, part, level, folder, cache, [f"-D{m}"]) for m in ("ONLY_PREDICT", "NOTHING"))
    return with_it.flash - without.flash, with_it.ram - without.ram


def _output(command):
    """Return what a command prints."""
    return subprocess.run(command, capture_output=True, text=True, check=True).stdout
