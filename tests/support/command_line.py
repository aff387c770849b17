"""What tests of the command line share."""

import re
import signal
import subprocess
import sys

from support import processes

COMMAND = [sys.executable, "-c", "from tanlearn.cli import main; main()"]


def plain(text):
    """Return a text without colours, which Typer gives its own messages on some build servers."""
    return re.sub(r"\x1b\[[0-9;]*m", "", text)


def interrupt(arguments, sign, folder):
    """Return exit code and streams of a command that gets Ctrl-C once its standard error shows a sign."""
    # A shell that runs tests in the background may have its children ignore the signal.
    listening = f"import signal; signal.signal(2, signal.default_int_handler); {COMMAND[2]}"
    pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "text": True}
    with processes.started([*COMMAND[:1], "-c", listening, *arguments], cwd=folder, **pipes) as process:
        seen = ""
        for line in process.stderr:
            seen += line
            if sign in line:
                break
        process.send_signal(signal.SIGINT)
        out, err = processes.output(process)
    return process.returncode, out, seen + err
