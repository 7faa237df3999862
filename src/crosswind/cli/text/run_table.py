"""Tables of runs: the usual columns within the terminal's width, or those that were asked for."""

import shutil
import sys
from collections.abc import Callable, Mapping, Sequence

from crosswind.cli.text.output import table
from crosswind.dashboards.wording import NONE, scalar, seconds, utc
from crosswind.data.schema.answers.runs import RunOutcome
from crosswind.data.schema.errors import InvalidInputError
from crosswind.data.schema.metric import Scalar
from crosswind.data.schema.steps import PHASES

Cell = Callable[[RunOutcome], str]
CONFIGURATION = "configuration"
LEAST_WIDTH, USUAL_WIDTH = 24, 60  # of a configuration that is cut; the second where there is no terminal
FREE = {"config": "configuration", "tag": "tags", "software": "software"}  # config.batch, tag.note


def _cov(run: RunOutcome) -> str:
    return NONE if run.step_cov_ratio is None else f"{run.step_cov_ratio:.1%}"


def _phase(name: str) -> Cell:
    return lambda run: seconds(getattr(run, f"{name}_seconds"))


COLUMNS: Mapping[str, tuple[str, Cell]] = {
    "run": ("run", lambda run: run.run_id),
    "workload": ("workload", lambda run: run.workload),
    "state": ("state", lambda run: run.state),
    "ranks": ("ranks", lambda run: str(run.world_size or NONE)),
    "time": ("run time", lambda run: seconds(run.run_seconds)),
    "steps": ("steps", lambda run: NONE if run.steps is None else str(run.steps)),
    "p50": ("step p50", lambda run: seconds(run.step_p50_seconds)),
    "cov": ("CoV", _cov),
    CONFIGURATION: (CONFIGURATION, lambda run: " ".join(_words(run.configuration))),
    "system": ("system", lambda run: run.system),
    "job": ("job", lambda run: run.job_id or NONE),
    "nodes": ("nodes", lambda run: ",".join(run.nodes) or NONE),
    "started": ("started", lambda run: utc(run.started_ns)),
    "ended": ("ended", lambda run: utc(run.ended_ns)),
    "exit": ("exit", lambda run: NONE if run.exit_code is None else str(run.exit_code)),
    "p05": ("step p05", lambda run: seconds(run.step_p05_seconds)),
    "p95": ("step p95", lambda run: seconds(run.step_p95_seconds)),
    "mean": ("step mean", lambda run: seconds(run.step_mean_seconds)),
    **{phase: (phase, _phase(phase)) for phase in PHASES},
    "command": ("command", lambda run: " ".join(run.command) or NONE),
}
USUAL = tuple(COLUMNS)[: tuple(COLUMNS).index(CONFIGURATION)]


def columns_of(text: str) -> dict[str, tuple[str, Cell]]:
    """Return headings and cells of `run,p50,config.batch`, by name. Raises: InvalidInputError naming the column."""
    return {name: _column(name) for name in text.split(",")}


def _column(name: str) -> tuple[str, Cell]:
    kind, dot, key = name.partition(".")
    if dot and kind in FREE and key:
        return key, lambda run: _cell(getattr(run, FREE[kind]).get(key))
    if name not in COLUMNS:
        free = ", ".join(f"{kind}.NAME" for kind in FREE)
        raise InvalidInputError(f"--columns {name[:40]!r}: expected some of {', '.join(COLUMNS)}, {free}")
    return COLUMNS[name]


def _cell(value: Scalar | None) -> str:
    return NONE if value is None else scalar(value)


def run_table(runs: Sequence[RunOutcome], columns: Mapping[str, tuple[str, Cell]] | None = None) -> str:
    """Return the runs as a table; without columns the usual ones, with configurations cut to the terminal's width."""
    if columns is not None:
        return _table(runs, list(columns.values()))
    usual = [COLUMNS[name] for name in USUAL]
    width, varying = _width_left(_table(runs, usual)), _varying(runs)

    def cut(run: RunOutcome) -> str:
        return short(run.configuration, varying[run.workload], width)

    return _table(runs, [*usual, (CONFIGURATION, cut)])


def short(configuration: Mapping[str, Scalar], varying: frozenset[str], width: int) -> str:
    """Return as many parameters as fit into so many letters, those that vary first: `batch=8 lr=0.1 +12`."""
    names = sorted(configuration, key=lambda name: name not in varying)
    words = _words({name: configuration[name] for name in names})
    if len(whole := " ".join(words)) <= width:
        return whole
    count = len(words)
    while count > 1 and len(_begun(words, count)) > width:
        count -= 1
    begun = _begun(words, count)
    return begun if len(begun) <= width else f"{begun[: width - 1]}…"


def _begun(words: Sequence[str], count: int) -> str:
    left = len(words) - count
    return " ".join([*words[:count], *([f"+{left}"] if left else [])])


def _words(configuration: Mapping[str, Scalar]) -> list[str]:
    return [f"{name}={scalar(value)}" for name, value in configuration.items()]


def _varying(runs: Sequence[RunOutcome]) -> dict[str, frozenset[str]]:
    """By workload the parameters that differ between its runs."""
    values: dict[str, dict[str, set[Scalar | None]]] = {}
    for run in runs:
        of_workload = values.setdefault(run.workload, {})
        for name in run.configuration:
            of_workload.setdefault(name, set())
    for run in runs:
        for name, kinds in values[run.workload].items():
            kinds.add(run.configuration.get(name))
    return {
        workload: frozenset(name for name, kinds in parameters.items() if len(kinds) > 1)
        for workload, parameters in values.items()
    }


def _width_left(beside: str) -> int:
    """Return the letters that a terminal has left next to a table."""
    if not sys.stdout.isatty():
        return USUAL_WIDTH
    return max(LEAST_WIDTH, shutil.get_terminal_size().columns - max(map(len, beside.splitlines())) - 2)


def _table(runs: Sequence[RunOutcome], columns: Sequence[tuple[str, Cell]]) -> str:
    return table([heading for heading, _ in columns], [[cell(run) for _, cell in columns] for run in runs])
