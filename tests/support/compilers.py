"""Compilers of C that are installed: as commands, in lists of words."""

import re
import shutil
import subprocess
import sys
from importlib.util import find_spec

HOST = next((found for name in ("cc", "gcc", "clang") if (found := shutil.which(name))), None)
CPP = [found] if (found := shutil.which("c++") or shutil.which("g++")) else None
CLANG = [shutil.which("clang")] if shutil.which("clang") else None
#: clang with the headers and targets of all the world: pip install ziglang
ZIG = [sys.executable, "-m", "ziglang", "cc"] if find_spec("ziglang") else None
ARM = ["-mthumb", "-ffreestanding"]
#: What compiles to which assembly; None where there is no such compiler.
TARGETS = {
    "host": HOST and [HOST],
    "clang": CLANG or (ZIG and [*ZIG, "-target", "x86_64-linux-musl"]),
    "gcc-m0plus": ["arm-none-eabi-gcc", "-mcpu=cortex-m0plus", *ARM],
    "gcc-m3": ["arm-none-eabi-gcc", "-mcpu=cortex-m3", *ARM],
    "clang-m0plus": ZIG and [*ZIG, "-target", "thumb-freestanding-eabi", "-mcpu=cortex_m0plus", "-ffreestanding"],
    "clang-m3": ZIG and [*ZIG, "-target", "thumb-freestanding-eabi", "-mcpu=cortex_m3", "-ffreestanding"],
    "avr-attiny85": ["avr-gcc", "-mmcu=attiny85"],
    "avr-atmega1284p": ["avr-gcc", "-mmcu=atmega1284p"],
}
TARGETS = {name: command if command and shutil.which(command[0]) else None for name, command in TARGETS.items()}


def compile_c(command, folder, *arguments):
    """Run a compiler in a folder; what it says is the error if it fails."""
    done = subprocess.run([*command, *arguments], cwd=folder, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr


def multiplications(assembly):
    """Return the instructions of a file of assembly that multiply or divide, or call what does."""
    instructions = re.findall(r"^\s+([a-z]\S*)(.*)", assembly.read_text(), re.MULTILINE)
    return [
        line
        for line in instructions
        if re.search("mul|mla|mls|div", line[0]) or re.search(r"\b__\w*(mul|div)", line[1])
    ]
