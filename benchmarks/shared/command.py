"""Command lines of long experiments: ``run``, which continues where it stopped, ``report`` and ``pack``."""

import argparse
from contextlib import contextmanager
from pathlib import Path

from benchmarks import DATA, command_line

from .results import pack


def parsers(description, spec, run, report, output=None, options=None, data=True):
    """Return a parser with the subcommands ``run``, ``report`` and ``pack``, and the parser of ``run``.

    Reports are written to the folder ``output``, by default that of the command. ``options`` maps further options of
    ``report`` to keywords of ``add_argument``. ``data`` is whether ``run`` reads the published data sets.
    """
    here = Path(spec.origin).parent
    parser = command_line(description, spec)
    commands = parser.add_subparsers(required=True, metavar="run | report | pack")
    running = commands.add_parser("run", help="run everything that is not finished")
    running.set_defaults(do=run)
    if data:
        running.add_argument("--data", type=Path, default=DATA)
    reporting = commands.add_parser("report", help="write tables and figures from the finished results")
    reporting.set_defaults(do=report)
    reporting.add_argument("--output", type=Path, default=output or here, help="folder of the report and of figures/")
    for name, keywords in (options or {}).items():
        reporting.add_argument(name, **keywords)
    packing = commands.add_parser("pack", help="compress appended results for a commit")
    packing.set_defaults(do=pack_all)
    for command in (running, reporting, packing):
        command.add_argument("--results", type=Path, default=here / "results", help="folder of results")
    return parser, running


def add_choices(parser, name, choices, **keywords):
    """Add an option that takes several of some names, by default all of them."""
    listed = ", ".join(choices).replace("%", "%%")  # argparse formats the help
    keywords = {"default": list(choices), "help": listed, **keywords}
    parser.add_argument(name, nargs="+", choices=choices, metavar=name.strip("-").removesuffix("s").upper(), **keywords)


def add_experiments(running, known, default, **keywords):
    """Add the experiments to run, as positional arguments, to a parser."""

    def experiment(name):
        if name not in known:
            raise argparse.ArgumentTypeError(f"the experiments are {', '.join(known)}; got {name}.")
        return name

    keywords = {"help": ", ".join(known), **keywords}
    running.add_argument("experiments", nargs="*", type=experiment, default=default, metavar="EXPERIMENT", **keywords)


def execute(parser, argv=None):
    """Execute the subcommand of a command line."""
    arguments = parser.parse_args(argv)
    with interruptible(arguments.results):
        arguments.do(arguments)


@contextmanager
def interruptible(results):
    """End an interrupted command with a message about its results."""
    try:
        yield
    except KeyboardInterrupt:
        raise SystemExit(f"stopped; what is finished is in {results}, and the same command goes on") from None


def pack_all(arguments):
    """Pack every file of results to which something was appended."""
    for path in sorted([*arguments.results.glob("*.jsonl"), *arguments.results.glob("*.csv")]):
        pack(path)
