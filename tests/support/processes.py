"""Programs that tests start, and what tests wait for. No outcome of a test depends on how long something takes."""

from __future__ import annotations

import os
import signal
import subprocess
from contextlib import contextmanager, suppress

#: Seconds after which a wait is given up, and reported as a hang. They only end waits for events that never come.
HANG = 3600
#: Options of Dask, which else gives workers up that take half a minute to answer or five to show a sign of life.
PATIENT_DASK = {
    "distributed.comm.timeouts.connect": f"{HANG}s",
    "distributed.comm.timeouts.tcp": f"{HANG}s",
    "distributed.scheduler.worker-ttl": f"{HANG}s",
}


@contextmanager
def started(command, **options):
    """Start a program in a process group of its own; the whole group ends with the context, whatever happens."""
    process = subprocess.Popen(command, start_new_session=True, **options)
    try:
        yield process
    finally:
        end(process)


def end(process):
    """Kill a program that ``started`` has started, with all processes that it has started, and close its streams."""
    if os.name == "posix":
        with suppress(ProcessLookupError):  # no process of the group is left
            os.killpg(process.pid, signal.SIGKILL)
    else:
        process.kill()
    process.wait()
    for stream in (process.stdin, process.stdout, process.stderr):
        if stream is not None:
            stream.close()


def output(process, stdin=None):
    """Wait for the end of a program, and return what it wrote to its streams."""
    try:
        return process.communicate(stdin, timeout=HANG)
    except subprocess.TimeoutExpired as error:
        raise AssertionError(f"{process.args} hangs: it was waited for {HANG} seconds.") from error


def run(command, **options):
    """Return the exit code and the streams of a program; processes that it has started end with it."""
    pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "text": True}
    with started(command, **{**pipes, **options}) as process:
        out, err = output(process)
    return subprocess.CompletedProcess(command, process.returncode, out, err)


def await_event(event):
    """Wait for an event of this process that must come."""
    assert event.wait(HANG), f"This hangs: an event was waited for {HANG} seconds."


def await_end(thread):
    """Wait for the end of a thread of this process that must end."""
    thread.join(HANG)
    assert not thread.is_alive(), f"This hangs: a thread was waited for {HANG} seconds."
