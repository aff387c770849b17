"""Compilers and a simulator for microcontrollers: Debian's packages, unpacked into a folder; nothing is installed.

    python -m benchmarks.embedded.toolchain FOLDER

With PATH=FOLDER/usr/bin:$PATH, tests find them, too. avr-gcc and arm-none-eabi-gcc find their headers and libraries
relative to their own paths. simavr is a library, to which the runner of `simulators.py` is linked."""

import os
import shutil
import subprocess
from pathlib import Path

from benchmarks import command_line

PACKAGES = {
    "avr-gcc": ["gcc-avr", "binutils-avr", "avr-libc", "arduino-core-avr"],
    "arm-none-eabi-gcc": ["gcc-arm-none-eabi", "binutils-arm-none-eabi"],
    "simavr": ["simavr", "libsimavr2", "libsimavr-dev"],
}


class Missing(Exception):
    """A tool is not here, and why."""


def unpack(folder, tool):
    """Download the Debian packages of a tool, and unpack them into a folder, once."""
    folder = Path(folder).resolve()
    done = folder / f"{tool}.unpacked"
    if done.exists():
        return
    absent = [program for program in ("apt-get", "dpkg") if shutil.which(program) is None]
    if absent:
        raise Missing(f"{tool} is not installed, and its Debian packages need {' and '.join(absent)}")
    packages = folder / "packages" / tool
    packages.mkdir(parents=True, exist_ok=True)
    found = subprocess.run(
        ["apt-get", "download", *PACKAGES[tool]], cwd=packages, capture_output=True, text=True, check=False
    )
    if found.returncode != 0:
        raise Missing(f"apt-get cannot download {tool}: {(found.stderr.strip() or 'no reason').splitlines()[-1]}")
    for package in packages.glob("*.deb"):
        subprocess.run(["dpkg", "-x", str(package), str(folder)], check=True)
    done.touch()


def prepare(tool, folder=None):
    """Return the path of a tool, from the folder of packages if it is not installed; raises Missing."""
    program = shutil.which(tool, path=_path(folder))
    if program is None and folder is not None:
        unpack(folder, tool)
        program = shutil.which(tool, path=_path(folder))
    if program is None:
        raise Missing(f"{tool} is not installed; name a folder to unpack Debian's packages in")
    return Path(program)


def _path(folder):
    """Return where programs are looked for."""
    return os.pathsep.join([*([str(Path(folder).resolve() / "usr" / "bin")] if folder else []), os.environ["PATH"]])


def main():
    """Parse the command line and run it."""
    parser = command_line(__doc__, __spec__)
    parser.add_argument("folder", type=Path)
    folder = parser.parse_args().folder
    for tool in PACKAGES:
        try:
            print(prepare(tool, folder))
        except Missing as missing:
            print(f"{missing}.")


if __name__ == "__main__":
    main()
