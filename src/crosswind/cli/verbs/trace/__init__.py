"""`crosswind trace`: where the time of traced ranks goes, and whom they wait for."""

import argparse
from importlib import import_module
from pathlib import Path

from crosswind.cli.arguments import configure_server
from crosswind.cli.quantities import above_zero, whole
from crosswind.data.schema.errors import InvalidInputError
from crosswind.settings import Settings

__all__ = ["ACTIONS", "configure", "execute"]

ACTIONS = {
    "what-if": "what_if",
    "merge": "merge",
    "diff": "diff",
}  # by the module that does them; without one of these, `report`
OF_ACTIONS = {
    "what-if": ("without", "faster", "steps"),
    "merge": ("output",),
    "": ("html", "top"),
    "diff": ("html", "top"),
}
ROWS = 10


def configure(parser: argparse.ArgumentParser) -> None:
    """Adds the verb's arguments."""
    parser.add_argument(
        "words",
        nargs="*",
        metavar="[what-if | merge | diff] FILE",
        help="traces of the ranks of one run, or folders of them; of any format (docs/traces.md). "
        "what-if: the time without a cause; merge: one file for Perfetto; diff A B: "
        "by what the steps of B differ from those of A, two files, folders or stored runs (docs/trace-diff.md)",
    )
    parser.add_argument("--run", metavar="RUN", help="the stored traces of this run, in place of files")
    parser.add_argument("--last-step", action="store_true", help="leave out the last step, which recording cut short")
    parser.add_argument("--top", type=whole, metavar="N", help=f"so many kernels and operators (default {ROWS})")
    parser.add_argument("--html", type=Path, metavar="FILE", help="write the report here, as one file without requests")
    parser.add_argument(
        "--without",
        action="append",
        metavar="CAUSE",
        help="of what-if: slow-rank, rank:N, communication, stages, sequences, kernels:PATTERN (default: each)",
    )
    parser.add_argument(
        "--faster", type=above_zero, metavar="X", help="by which kernels:PATTERN are faster (default 2)"
    )
    parser.add_argument("--steps", type=whole, metavar="N", help="of what-if: steps of the whole run, for time saved")
    parser.add_argument("-o", "--output", type=Path, metavar="FILE", help="of merge: merged.json or merged.json.gz")
    parser.add_argument("--workers", type=whole, default=1, metavar="N", help="files read at once (default 1)")
    configure_server(parser)


def execute(arguments: argparse.Namespace, settings: Settings) -> int:
    """Does the action; its exit code. Raises: ProjectError."""
    action, *files = (
        arguments.words if arguments.words[:1] and arguments.words[0] in ACTIONS else ["", *arguments.words]
    )
    _check(action, arguments)
    if bool(files) == bool(arguments.run):
        raise InvalidInputError(
            f"trace: {'both files and --run' if files else 'no files'}; expected FILE... or --run RUN"
        )
    module = import_module(f"crosswind.cli.verbs.trace.{ACTIONS.get(action, 'report')}")
    code: int = module.execute([Path(file) for file in files], arguments, settings)
    return code


def _check(action: str, arguments: argparse.Namespace) -> None:
    """Refuse options of another action. Raises: InvalidInputError."""
    for other, names in OF_ACTIONS.items():
        given = [name for name in names if getattr(arguments, name) is not None]
        if given and other != action and given[0] not in OF_ACTIONS.get(action, ()):
            of = f"`crosswind trace {other}`".replace(" `", "`")
            raise InvalidInputError(f"--{given[0]}: is of {of}; expected none of it here")
