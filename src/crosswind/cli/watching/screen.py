"""The screen of a watched run: on a terminal a few lines that are drawn anew, elsewhere a line for every change."""

import shutil
import sys
from collections.abc import Iterator
from typing import TextIO

from crosswind.cli.progress import bar
from crosswind.cli.text.output import printable, say_json
from crosswind.cli.watching.look import Look, Span
from crosswind.dashboards.wording import count, moment, percent, seconds
from crosswind.data.schema.run import RunState
from crosswind.data.schema.words import words

UP, CLEAR, CLEAR_BELOW = "\x1b[{}F", "\x1b[K", "\x1b[J"
COLUMNS = 80
SECOND_NS = 1_000_000_000
OLD_SECONDS = 90.0  # after which the newest step is called old: segments come once a minute


class Screen:
    """Shows looks at a run."""

    def __init__(self, *, as_json: bool, stream: TextIO | None = None) -> None:
        self._stream = stream or sys.stdout
        self._as_json = as_json
        self._is_terminal = self._stream.isatty() and not as_json
        self._drawn = 0
        self._line = ""

    @property
    def is_live(self) -> bool:
        """Return whether it is drawn anew also when nothing has come, as times go on."""
        return self._is_terminal

    def show(self, look: Look) -> None:
        """Show a look."""
        if self._as_json:
            say_json({**vars(look), "run_id": look.run.run_id, "state": look.run.state, "pace": look.pace or None})
        elif self._is_terminal:
            self._draw(look)
        elif (line := one_line(look)) != self._line:
            self._line = line
            self._write(f"{moment(look.at_ns):%H:%M:%S} {line}\n")

    def _draw(self, look: Look) -> None:
        width = min(COLUMNS, shutil.get_terminal_size().columns) - 1
        drawn = [line[:width] for line in lines(look)]
        up = UP.format(self._drawn) if self._drawn else ""
        self._write(up + "".join(f"{line}{CLEAR}\n" for line in drawn) + CLEAR_BELOW)
        self._drawn = len(drawn)

    def _write(self, text: str) -> None:
        self._stream.write(text)
        self._stream.flush()


def lines(look: Look) -> Iterator[str]:
    """Yield the lines of a look, each of at most 80 columns where names are not long."""
    run = look.run
    ranks = f", {count(run.world_size, 'rank')}" if run.world_size else ""
    yield printable(f"{run.run_id}  {run.workload} on {run.system}{ranks}")
    yield _progress(look)
    if look.step_seconds is not None:
        yield f"step     {_step(look)}"
    if look.remaining is not None and look.ends is not None:
        yield f"left     {span(look.remaining)}"
        yield f"ends     {_clock(look.ends.median)} UTC [{_clock(look.ends.low)} .. {_clock(look.ends.high)}]"
    elif look.no_forecast:
        yield printable(f"left     not known: {look.no_forecast}")
    if look.waits_for:
        yield f"{'slow by' if run.state is RunState.RUNNING else 'slowed'}  {look.waits_for}"
    if run.state is not RunState.RUNNING:
        yield ended(look)


def one_line(look: Look) -> str:
    """Return a look in one line, without what changes by itself."""
    if look.run.state is not RunState.RUNNING:
        return ended(look)
    parts = [_steps(look)]
    parts += [f"{_step(look)} a step"] if look.step_seconds is not None else []
    parts += [f"{span(look.remaining)} left"] if look.remaining is not None else []
    return "; ".join([*parts, *([look.waits_for] if look.waits_for else [])])


def ended(look: Look) -> str:
    """Return how a run has ended."""
    run = look.run
    code = f" with exit code {run.exit_code}" if run.exit_code else ""
    after = f" after {seconds(run.run_seconds)}" if run.run_seconds is not None else ""
    return f"{words(run.state)}{code}{after}, {_steps(look)}"


def span(values: Span) -> str:
    """Return a median with its interval."""
    return f"{seconds(values.median)} [{seconds(values.low)} .. {seconds(values.high)}]"


def _progress(look: Look) -> str:
    age = (look.at_ns - (look.newest_ns or look.at_ns)) / SECOND_NS
    old = f", the newest {seconds(age)} ago" if age > OLD_SECONDS and look.run.state is RunState.RUNNING else ""
    if not look.total_steps or look.steps_done is None:
        return f"{words(look.run.state)}, {_steps(look)}{old}"
    return f"{bar(look.steps_done / look.total_steps)} {_steps(look)}{old}"


def _steps(look: Look) -> str:
    if look.steps_done is None:
        return "no steps yet"
    if not look.total_steps:
        return count(look.steps_done, "step")
    share = percent(look.steps_done / look.total_steps)
    return f"step {look.steps_done} of {look.total_steps}, {share}"


def _step(look: Look) -> str:
    usual = "" if look.usual is None else f", usually {span(look.usual)}: {look.pace}"
    return f"{seconds(look.step_seconds)}{usual}"


def _clock(moment_seconds: float) -> str:
    return f"{moment(round(moment_seconds * SECOND_NS)):%H:%M:%S}"
