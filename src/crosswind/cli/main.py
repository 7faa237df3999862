"""`crosswind VERB ...`: finds the verb, loads it, and turns errors into messages and exit codes.

Exit codes: 0 done, 1 something here is missing or broke, 2 the input was wrong, 75 not now (try again later),
130 interrupted; `crosswind run` exits as its program does.
"""

import argparse
import gc
import os
import sys
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from importlib import import_module
from keyword import iskeyword
from typing import NoReturn, Protocol, cast

from crosswind import __version__
from crosswind.data.schema.errors import PausedError, ProjectError, UnavailableError
from crosswind.data.schema.paths import is_incoming
from crosswind.settings import Settings


@dataclass(frozen=True)
class Verb:
    """One command: its name, its line in the help, and the module that does it."""

    name: str
    help: str

    @property
    def module(self) -> str:
        """The name of the verb's module."""
        return f"crosswind.cli.verbs.{self.name}{'_' if iskeyword(self.name) else ''}"


class VerbModule(Protocol):
    """The interface of every verb's module."""

    def configure(self, parser: argparse.ArgumentParser) -> None:
        """Adds the verb's arguments."""
        ...

    def execute(self, arguments: argparse.Namespace, settings: Settings) -> int:
        """Does it; returns the exit code. Raises: ProjectError."""
        ...


VERBS = (
    Verb("demo", "measure, explain, predict, tune and serve: the whole loop on this machine"),
    Verb("run", "run a program and record it: crosswind run -- torchrun ..."),
    Verb("agent", "sample this node's counters into the spool"),
    Verb("ingest", "store spools and other tools' files"),
    Verb("import", "what is stored, and which questions it can answer"),
    Verb("sync", "store the spools of many nodes or Slurm's jobs, or ship spools to a server"),
    Verb("compact", "make few files of the many that arrived; a server does so by itself"),
    Verb("lake", "the stored rows: their size, small files and holes; merge files; read every file for damage"),
    Verb("nodes", "which nodes' samples arrive, and how their agents fare"),
    Verb("series", "the course of a metric of nodes, a job or runs over time; without one, the stored metrics"),
    Verb("runs", "list the stored runs"),
    Verb("show", "one run: its outcome, steps and ranks"),
    Verb("jobs", "list the scheduler's jobs: time limit, time used, energy"),
    Verb("job", "one job: time limit, time used, efficiency, energy, its runs and their verdicts"),
    Verb("check", "measure the nodes of an allocation before a job: which are slow, and --exclude for them"),
    Verb("explain", "why a run was slow"),
    Verb("report", "the page of a run, study or cohort as one file to mail: --html FILE, --pdf FILE"),
    Verb("compare", "by what one run took longer than another: causes that sum to the difference"),
    Verb("counters", "which of the nodes' counters go with slow runs of a workload"),
    Verb("interference", "which neighbours go with slow runs: users by pseudonym, workloads, jobs"),
    Verb("predict", "how long a run to come or its steps will take, on one scale or many, with intervals"),
    Verb("walltime", "the shortest time limit that is enough, as a line for sbatch"),
    Verb("remaining", "how long a run that is in progress will still take"),
    Verb("watch", "a run in progress until its end: how far it is, its pace, what is left, whom it waits for"),
    Verb("weather", "how slow a system is now and in the next hours, and when its runs became slower for good"),
    Verb("stragglers", "which ranks, devices, nodes and switches are slower than their peers, over all runs or in one"),
    Verb("regressions", "when workloads became slower or faster for good, and what changed just then"),
    Verb(
        "trace", "where the time of traced ranks goes: torch.profiler, Nsight, rocprofv3, XLA, Paraver; what-if, merge"
    ),
    Verb("shares", "samples for each rank so that ranks of unequal speed finish together"),
    Verb("sql", "one SELECT over runs, steps, jobs, samples and trials: crosswind sql 'select ...'"),
    Verb("models", "trained models, their accuracy, and which one answers; promote, rollback, train"),
    Verb("tune", "find a good configuration in a handful of runs: crosswind tune exec STUDY -- CMD {parameter}"),
    Verb("lab", "train on hosts of this machine under known faults: run, faults, export, clean"),
    Verb("share", "let everybody see a run, or take part in a study"),
    Verb("audit", "who logged in, shared, exported, deleted or revealed what, and when"),
    Verb("reveal", "whose pseudonym it is; the audit keeps who asked"),
    Verb("serve", "serve pages and API"),
    Verb("mcp", "a door for agents (MCP): explain, compare, predict, walltime, tune, stragglers, jobs, runs, sql"),
    Verb("token", "who may ask a server: create, list and revoke tokens, and links that log a browser in"),
    Verb("backup", "catalog, lake and models as they are now, also while a server writes"),
    Verb("restore", "make the store of a backup again, or check a backup"),
    Verb("deploy", "files that install the agent on nodes, for Slurm and systemd, and a dashboard in Grafana"),
    Verb("doctor", "what works here, what does not, and how to get it"),
    Verb("completion", "print what completes verbs and options in a shell: bash, zsh or fish"),
)
WITHOUT_STORE = (  # or with one of their own
    *("run", "agent", "doctor", "lab", "demo", "deploy", "token", "restore", "completion"),
)
NEW_OBJECTS = 50_000  # after which Python searches for garbage, instead of 700: imports make many, but no garbage
ASKING = (  # verbs that answer from the store or a server, after which nothing remains to be done
    *(
        "nodes",
        "runs",
        "show",
        "jobs",
        "job",
        "explain",
        "report",
        "compare",
        "counters",
        "interference",
        "predict",
        "walltime",
    ),
    *("remaining", "watch", "weather", "stragglers", "regressions", "shares", "trace", "tune", "series", "sql"),
)
WRONG_INPUT, BROKEN, TRY_LATER, INTERRUPTED = 2, 1, 75, 130


def script() -> int:
    """Run the process's own command line; one that only asks ends here, without freeing all that it has imported.

    Searching for garbage while importing, and freeing every object at the end, take a third of its time.
    """
    gc.set_threshold(NEW_OBJECTS)
    code = main()
    if sys.argv[1:2] and sys.argv[1] in ASKING:
        _end_at_once(code)
    return code


def _end_at_once(code: int) -> NoReturn:
    for stream in (sys.stdout, sys.stderr):
        with suppress(OSError, ValueError):  # its reader left, or it is closed
            stream.flush()
    os._exit(code)


def main(argv: Sequence[str] | None = None) -> int:
    """The process's exit code."""
    words = list(sys.argv[1:] if argv is None else argv)
    verb = next((word for word in words if not word.startswith("-")), None)
    try:
        return _execute(words, verb) if words else _greet()
    except (UnavailableError, PausedError) as error:
        return _fail(error, TRY_LATER)
    except ProjectError as error:
        return _fail(error, WRONG_INPUT)
    except KeyboardInterrupt:
        return INTERRUPTED
    except BrokenPipeError:  # the reader of our output left, as `| head` does
        sys.stderr.close()
        return 0
    except (ModuleNotFoundError, OSError) as error:  # also a full disk, or another user's folder
        return _fail(_advice(verb, error), BROKEN)


def build_parser(verb: str | None = None) -> argparse.ArgumentParser:
    """The parser of every verb; only the named one is loaded, because others may need heavy modules."""
    return _parser({verb} if verb else set())


def build_whole_parser() -> argparse.ArgumentParser:
    """The parser of every verb with the arguments of all of them."""
    return _parser({command.name for command in VERBS})


def _parser(loaded: set[str]) -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="crosswind",
        description="Why a distributed training run was slow, how long the next one will take, and what to run.",
        epilog="`crosswind VERB --help` says more; `crosswind demo` shows it all in two minutes.",
    )
    parser.add_argument("--version", action="version", version=f"crosswind {__version__}")
    verbs = parser.add_subparsers(dest="verb", metavar="VERB", required=True)
    for command in VERBS:
        subparser = verbs.add_parser(
            command.name, help=command.help, description=f"{command.help}.", allow_abbrev=False
        )
        if command.name in loaded:
            load(command).configure(subparser)
            subparser.add_argument("--json", action="store_true", help="print one JSON value for machines")
    return parser


def _execute(words: Sequence[str], verb: str | None) -> int:
    arguments = _arguments(build_parser(verb), words)
    module = load(next(candidate for candidate in VERBS if candidate.name == verb))
    settings = Settings.from_environment()
    if verb not in WITHOUT_STORE:
        take_incoming(settings)
    return module.execute(arguments, settings)


def _arguments(parser: argparse.ArgumentParser, words: Sequence[str]) -> argparse.Namespace:
    """Parse a verb's words, which may also stand behind its options: argparse takes those before them alone."""
    arguments, left = parser.parse_known_args(words)
    if left and (any(word.startswith("-") for word in left) or not hasattr(arguments, "words")):
        parser.error(f"unrecognized arguments: {' '.join(left)}")
    if left:
        arguments.words = [*arguments.words, *left]
    return arguments


def _greet() -> int:
    from crosswind.cli.text.first_steps import first_steps  # noqa: PLC0415 - no verb needs it
    from crosswind.cli.text.output import say  # noqa: PLC0415

    say(first_steps(Settings.from_environment()))
    return 0


def load(verb: Verb) -> VerbModule:
    """The verb's module."""
    return cast(VerbModule, import_module(verb.module))


def take_incoming(settings: Settings) -> None:
    """Store what `crosswind run` has left in the store's folder; a problem with that is reported, and stops nothing."""
    if not is_incoming(settings.home):
        return
    try:
        from crosswind.ingest.load.incoming import store_incoming  # noqa: PLC0415 - heavy, and seldom needed
    except ModuleNotFoundError:  # a node without a store; the verb says so, if it needs one
        return
    for problem in store_incoming(settings.home, settings.database, lambda: settings.lake):
        sys.stderr.write(f"crosswind: {problem}\n")


def _advice(verb: str | None, error: ModuleNotFoundError | OSError) -> str:
    if isinstance(error, ModuleNotFoundError):
        extra = verb if verb in ("lab", "mcp") else "server"
        return f"{verb} needs {error.name}: pip install 'crosswind[{extra}]'"
    return f"{verb}: {error}"


def _fail(message: object, code: int) -> int:
    sys.stderr.write(f"crosswind: {message}\n")
    return code


if __name__ == "__main__":
    sys.exit(script())
