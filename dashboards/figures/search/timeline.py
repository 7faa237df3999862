"""A study's trials over time: when they were begun, when their runs ended, and how their leases stand."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import ClassVar

from crosswind.dashboards.figure import Figure
from crosswind.dashboards.figures.chart import TABLE_ROWS, Table, along_time, paper
from crosswind.dashboards.palette import BLUE, GREEN, MUTED, ORANGE, PEER, VERMILION
from crosswind.dashboards.wording import NONE, count, iso, seconds, utc
from crosswind.data.schema.run import Run, begun_ns
from crosswind.data.schema.trial import TrialRecord, TrialState

DRAWN = 200  # trials, the newest
STALE = "lease ran out"
LOOKS = {  # the state's colour and symbol
    TrialState.DONE: (GREEN, "circle"),
    TrialState.LEASED: (BLUE, "triangle-right"),
    STALE: (ORANGE, "diamond"),
    TrialState.WAITING: (MUTED, "circle-open"),
    TrialState.RELEASED: (MUTED, "triangle-left-open"),
    TrialState.PRUNED: (PEER, "square"),
    TrialState.INFEASIBLE: (PEER, "square-x-open"),
    TrialState.FAILED: (VERMILION, "x"),
}


@dataclass(frozen=True)
class TrialTime:
    """A trial from when it was suggested; `ended_ns` is None where no stored run says it."""

    number: int
    state: str
    began_ns: int
    ended_ns: int | None
    lease_ns: int | None
    run_id: str | None

    @property
    def seconds(self) -> float | None:
        """The time from the suggestion to the end."""
        return None if self.ended_ns is None else max(self.ended_ns - self.began_ns, 0) / 1e9


@dataclass(frozen=True)
class Timeline:
    """The newest trials in their order; `now_ns` is where those that are leased go on."""

    name: ClassVar[str] = "timeline"
    trials: tuple[TrialTime, ...]
    now_ns: int

    @property
    def title(self) -> str:
        """The finding."""
        held, stale = (self._count(state) for state in (TrialState.LEASED, STALE))
        running = f"{count(held, 'trial')} {'is' if held == 1 else 'are'} being measured" if held else "No trial is"
        verb = "" if held else " being measured now"
        lost = f", {count(stale, 'lease')} ran out" if stale else ""
        return f"{running}{verb}{lost}"

    def _count(self, state: str) -> int:
        return sum(trial.state == state for trial in self.trials)

    @property
    def sentence(self) -> str:
        """The figure in words."""
        states = [f"{self._count(state)} {state}" for state in LOOKS if self._count(state)]
        return f"The newest {count(len(self.trials), 'trial')} from suggestion to end: {', '.join(states)}."

    @property
    def table(self) -> Table:
        """The newest trials."""
        rows = (
            (
                str(trial.number),
                trial.state,
                utc(trial.began_ns),
                seconds(trial.seconds),
                NONE if trial.lease_ns is None else utc(trial.lease_ns),
            )
            for trial in self.trials[-TABLE_ROWS:]
        )
        return Table(("trial", "state", "suggested", "took", "lease until"), tuple(rows))

    def draw(self) -> Figure:
        """The plotly figure: a line for each trial, its end marked by its state."""
        figure = paper(self.title, height=min(160 + 12 * len(self.trials), 560), x="time, UTC", y="trial")
        ends = [self._end(trial) for trial in self.trials]
        figure.add_scatter(
            x=[x for trial, end in zip(self.trials, ends, strict=True) for x in (iso(trial.began_ns), iso(end), None)],
            y=[y for trial in self.trials for y in (trial.number, trial.number, None)],
            mode="lines",
            line={"color": PEER, "width": 2},
            showlegend=False,
            hoverinfo="skip",
        )
        held = [trial for trial in self.trials if trial.state == TrialState.LEASED and trial.lease_ns]
        if held:
            figure.add_scatter(
                x=[x for trial in held for x in (iso(self.now_ns), iso(self._lease_end(trial)), None)],
                y=[y for trial in held for y in (trial.number, trial.number, None)],
                mode="lines",
                line={"color": BLUE, "width": 2, "dash": "dot"},
                name="lease holds",
                hoverinfo="skip",
            )
        for state, (colour, symbol) in LOOKS.items():
            pairs = [(trial, end) for trial, end in zip(self.trials, ends, strict=True) if trial.state == state]
            if pairs:
                marker = {"color": colour, "symbol": symbol, "size": 9}
                figure.add_scatter(**_marks(pairs), name=str(state), marker=marker)
        return along_time(figure).update_yaxes(autorange="reversed")

    def _lease_end(self, trial: TrialTime) -> int:
        """Return the end of a lease as it is drawn: one of a day would leave no room for the trials."""
        longest = (self.now_ns - min(trial.began_ns for trial in self.trials)) // 4
        return min(trial.lease_ns or 0, self.now_ns + longest)

    def _end(self, trial: TrialTime) -> int:
        if trial.state == TrialState.LEASED:
            return self.now_ns
        return trial.ended_ns or (trial.lease_ns if trial.state == STALE else None) or trial.began_ns


def _marks(pairs: Sequence[tuple[TrialTime, int]]) -> dict[str, object]:
    return {
        "x": [iso(end) for _, end in pairs],
        "y": [trial.number for trial, _ in pairs],
        "mode": "markers",
        "customdata": [[trial.run_id] if trial.run_id else None for trial, _ in pairs],
        "hovertext": [_described(trial) for trial, _ in pairs],
        "hovertemplate": "%{hovertext}<extra></extra>",
    }


def _described(trial: TrialTime) -> str:
    is_held = trial.state == TrialState.LEASED and trial.lease_ns
    how = f"lease until {utc(trial.lease_ns)}" if is_held else seconds(trial.seconds)
    return f"trial {trial.number}: {trial.state}, {how}"


def timeline(
    records: Sequence[TrialRecord], runs: Mapping[str, Run], now_ns: int, *, first: int = 1
) -> Timeline | None:
    """The figure, or None where no id of a trial says when it was suggested.

    `runs` are those stored, by id; the first of the records is the study's trial number `first`.
    """
    numbered = list(enumerate(records, first))[-DRAWN:]
    trials = [
        TrialTime(
            number,
            _state(record, now_ns),
            began,
            ended.ended_ns if record.run_id and (ended := runs.get(record.run_id)) else None,
            record.lease_expires_ns,
            record.run_id,
        )
        for number, record in numbered
        if (began := begun_ns(record.trial_id)) is not None
    ]
    return Timeline(tuple(trials), now_ns) if trials else None


def _state(record: TrialRecord, now_ns: int) -> str:
    is_stale = record.trial.state is TrialState.LEASED and (record.lease_expires_ns or now_ns) < now_ns
    return STALE if is_stale else record.trial.state
