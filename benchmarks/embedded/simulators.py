"""Programs run on rows without a board: AVR cycle by cycle in simavr, Cortex-M by unicorn and a model of its cycles.

The model, without wait states of the flash: loads and stores take 2 cycles, of several registers 1 and 1 each (2 more
into the program counter, 3 on the M3), taken branches 2 on the M0+ and 3 on the M3, calls 3, multiplications 1 (into 64
bits 5), divisions 12 (the most), everything else 1.
"""

import re
import shutil
import subprocess
import tempfile
from dataclasses import dataclass
from functools import cache
from importlib.util import find_spec
from pathlib import Path

import numpy as np

from benchmarks.embedded.toolchain import Missing, prepare

RUNNER = Path(__file__).with_name("avr_runner.c")
#: Where RAM of AVR begins in addresses of its compiler.
AVR_RAM = 0x800000
TOP, STOP = 0x100000, 0x1000
PAINT = b"\xa5"


@dataclass(frozen=True)
class Outcome:
    """Results of a program: classes and scores of every row, cycles, instructions (none for AVR), and bytes of stack.

    On Cortex-M, only the first rows are counted.
    """

    labels: np.ndarray
    scores: np.ndarray
    cycles: np.ndarray
    instructions: np.ndarray | None
    stack: int


def run(program, part, classifier, folder=None, n_counted=200):
    """Return the outcome of a program; raises Missing if its simulator is not here."""
    score, n_scores = classifier.scores.dtype, classifier.scores.shape[1]
    rows = np.ascontiguousarray(classifier.rows)
    found = np.dtype([("scores", score, n_scores), ("label", "<i2")], align=part.tool != "avr-gcc")
    if part.tool == "avr-gcc":
        return _run_avr(program, part, rows, found, folder)
    return _run_arm(program, part, rows, found, n_counted)


@cache
def avr_runner(folder):
    """Compile the runner, and return its path."""
    if shutil.which("cc") is None:
        raise Missing("there is no C compiler to compile simavr's runner")
    usr = prepare("simavr", folder).resolve().parents[1]
    libraries = [path.parent for path in [*usr.glob("lib/*/libsimavr.so"), *usr.glob("lib/libsimavr.so")]]
    if not libraries or not (usr / "include" / "simavr").exists():
        raise Missing("simavr is here without headers and library (Debian: libsimavr-dev)")
    path = Path(tempfile.mkdtemp(), "runner")
    places = [f"-I{usr / 'include'}", f"-L{libraries[0]}", f"-Wl,-rpath,{libraries[0]}"]
    command = ["cc", "-O2", str(RUNNER), *places, "-lsimavr", "-o", str(path)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        raise Missing(f"simavr's runner does not compile: {done.stderr.strip().splitlines()[-1]}")
    return path


def _run_avr(program, part, rows, found, folder):
    """Return the outcome of a program for AVR."""
    names = program.symbols
    places = [names["given"] - AVR_RAM, rows[0].nbytes, names["found"] - AVR_RAM, found.itemsize]
    words = map(str, [*places, names["_end"] - AVR_RAM])
    command = [str(avr_runner(folder)), str(program.path), part.name.lower(), *words]
    done = subprocess.run(command, input=rows.tobytes(), capture_output=True, check=False)
    record = np.dtype([("cycles", "<u8"), ("found", found)])
    if done.returncode != 0 or len(done.stdout) != 4 + len(rows) * record.itemsize:
        raise RuntimeError(f"simavr failed: {done.stderr.decode()}")
    stack = int(np.frombuffer(done.stdout, "<u4", 1)[0])
    records = np.frombuffer(done.stdout, record, offset=4)
    return Outcome(records["found"]["label"], records["found"]["scores"], records["cycles"], None, stack)


def _run_arm(program, part, rows, found, n_counted):
    """Return the outcome of a program for Cortex-M, whose functions are called one by one."""
    absent = [name for name in ("unicorn", "capstone", "elftools") if find_spec(name) is None]
    if absent:
        raise Missing(f"{', '.join(absent)} not installed (pip install 'tanlearn[embedded]')")
    import unicorn
    from elftools.elf.elffile import ELFFile
    from unicorn import arm_const

    machine = unicorn.Uc(unicorn.UC_ARCH_ARM, unicorn.UC_MODE_THUMB | unicorn.UC_MODE_MCLASS)
    is_m0 = "cortex-m0plus" in part.flags[0]
    machine.ctl_set_cpu_model(arm_const.UC_CPU_ARM_CORTEX_M0 if is_m0 else arm_const.UC_CPU_ARM_CORTEX_M3)
    machine.mem_map(0, 2 * TOP)
    with program.path.open("rb") as file:
        for segment in ELFFile(file).iter_segments("PT_LOAD"):
            machine.mem_write(segment["p_paddr"], segment.data())
    counter = _Counter(machine, is_m0)
    names = program.symbols

    def call(name):
        machine.reg_write(arm_const.UC_ARM_REG_R0, names["given"])
        machine.reg_write(arm_const.UC_ARM_REG_SP, TOP)
        machine.reg_write(arm_const.UC_ARM_REG_LR, STOP | 1)
        counter.restart()
        machine.emu_start(names[name] | 1, STOP)

    records, cycles, instructions = np.zeros(len(rows), found), [], []
    stack_room = 4096
    machine.mem_write(TOP - stack_room, PAINT * stack_room)
    stack = 0
    for k, row in enumerate(rows):
        machine.mem_write(names["given"], row.tobytes())
        call("timed")
        label = machine.reg_read(arm_const.UC_ARM_REG_R0)
        if k < n_counted:
            cycles.append(counter.cycles())
            instructions.append(counter.n_instructions)
        if k == n_counted - 1:
            counter.stop()
        if k == 0:
            left = bytes(machine.mem_read(TOP - stack_room, stack_room))
            stack = len(left.lstrip(PAINT))
        call("untimed")
        records[k] = np.frombuffer(bytes(machine.mem_read(names["found"], found.itemsize)), found)[0]
        records["label"][k] = np.uint32(label).astype(np.int32)
    return Outcome(records["label"], records["scores"], np.array(cycles), np.array(instructions), stack)


class _Counter:
    """Counts instructions and cycles, basic block by basic block."""

    def __init__(self, machine, is_m0):
        import capstone
        import unicorn

        self.machine, self.is_m0 = machine, is_m0
        self.decoder = capstone.Cs(capstone.CS_ARCH_ARM, capstone.CS_MODE_THUMB | capstone.CS_MODE_MCLASS)
        self.costs = {}
        self.hook = machine.hook_add(
            unicorn.UC_HOOK_BLOCK, lambda _, address, size, __: self.blocks.append((address, size))
        )
        self.restart()

    def restart(self):
        """Begin anew."""
        self.blocks = []

    def stop(self):
        """Count no more: programs run many times as fast."""
        self.machine.hook_del(self.hook)

    def cycles(self):
        """Return the cycles of the blocks since then, the return to the caller included."""
        total, self.n_instructions = 0, 0
        follows = [*(address for address, _ in self.blocks[1:]), STOP]
        for (address, size), following in zip(self.blocks, follows, strict=True):
            if (address, size) not in self.costs:
                self.costs[address, size] = self._cost(address, size)
            n, straight, taken = self.costs[address, size]
            self.n_instructions += n
            total += straight if following == address + size else taken
        return total

    def _cost(self, address, size):
        """Return instructions of a block, its cycles if what follows is the next, and if it is another."""
        lines = list(self.decoder.disasm(bytes(self.machine.mem_read(address, size)), address))
        if sum(line.size for line in lines) != size:
            raise RuntimeError(f"the block at {address:#x} is no code that capstone knows")
        costs = [instruction_cycles(line.mnemonic, line.op_str, self.is_m0) for line in lines]
        straight = sum(cost for cost, _ in costs)
        return len(lines), straight, straight - costs[-1][0] + costs[-1][1]


def instruction_cycles(mnemonic, operands, is_m0):
    """Return the cycles of an instruction that goes on to the next, and of one that does not."""
    name = mnemonic.split(".")[0]
    refill = 1 if is_m0 else 2
    if re.match(r"blx?$", name):
        return 3, 3
    if re.match(r"(bx|b|b(eq|ne|[chlm][sio]|cc|pl|v[sc]|[gl][te])|cbn?z)$", name):
        return 1, 1 + refill
    if re.match(r"tb[bh]$", name):
        return 2 + refill, 2 + refill
    if re.match(r"(push|pop|ldm|stm)", name):
        registers = operands[operands.index("{") :]
        n = sum(_span(part) for part in registers.strip("{}").split(","))
        return 1 + n, 1 + n + (2 if is_m0 else 3)
    if re.match(r"(ldrd|strd)", name):
        return 3, 3
    if re.match(r"(ldr|str)", name):
        return 2, 2 + refill
    if re.match(r"[us](mull|mlal)", name):
        return 5, 5
    if re.match(r"ml[as]$", name):
        return 2, 2
    if re.match(r"[us]div", name):
        return 12, 12
    return 1, 1 + refill


def _span(part):
    """Return how many registers a part of a list names."""
    ends = [int(number) for number in re.findall(r"r(\d+)", part)]
    return ends[1] - ends[0] + 1 if len(ends) == 2 else 1
