"""The time of a node: the runs and jobs that had it, and the gaps in its samples."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

from crosswind.dashboards.figure import Figure
from crosswind.dashboards.figures.chart import TABLE_ROWS, Table, along_time, label, paper
from crosswind.dashboards.figures.verdicts import LOOKS
from crosswind.dashboards.palette import BLUE, INK, PEER
from crosswind.dashboards.wording import count, iso, moment, percent, seconds, utc
from crosswind.data.schema.answers.explanations import Verdict
from crosswind.data.schema.answers.nodes import NodeHistory

GAPS, RUNS, JOBS = "gaps", "runs", "jobs"  # lanes, the lowest first
JUDGED = frozenset(look.word for look in LOOKS.values())
NS_A_MINUTE = 60_000_000_000
SHAPES = {Verdict.SLOW: "/", Verdict.PERHAPS_SLOW: ".", Verdict.ONE_RANK_DELAYS: "\\"}  # colour says as much
SHORTEST = 1 / 400  # of the time drawn: a shorter bar would not be seen


@dataclass(frozen=True)
class Bar:
    """Something that took from one moment to another; `word` says what came of it."""

    lane: str
    name: str
    word: str
    begin_ns: int
    end_ns: int

    @property
    def seconds(self) -> float:
        """Its length."""
        return (self.end_ns - self.begin_ns) / 1e9


@dataclass(frozen=True)
class Timeline:
    """Runs and jobs on a node and gaps in its samples, in the time from one moment to another."""

    name: ClassVar[str] = "history"
    bars: tuple[Bar, ...]
    from_ns: int
    to_ns: int

    @property
    def title(self) -> str:
        """The finding."""
        runs, slow = self._of(RUNS), [bar for bar in self._of(RUNS) if bar.word == LOOKS[Verdict.SLOW].word]
        if not runs:
            return f"No run had the node, {count(len(self._of(JOBS)), 'job')} did"
        if not any(bar.word in JUDGED for bar in runs):
            return f"None of its newest {count(len(runs), 'run')} has a verdict yet"
        return f"{len(slow)} of its newest {count(len(runs), 'run')} {'was' if len(slow) == 1 else 'were'} slow"

    @property
    def sentence(self) -> str:
        """The figure in words, for those who do not see it."""
        gaps = self._of(GAPS)
        missing = sum(bar.seconds for bar in gaps) * 1e9 / (self.to_ns - self.from_ns)
        unsampled = f", which are {percent(missing)} of that time" if gaps else ""
        shown = ", ".join(count(len(self._of(lane)), lane.removesuffix("s")) for lane in (RUNS, JOBS))
        between = f"from {utc(self.from_ns)} to {utc(self.to_ns)}"
        return f"The newest {shown} {between}, and {count(len(gaps), 'gap')} in the samples{unsampled}."

    @property
    def table(self) -> Table:
        """The numbers drawn, the newest first."""
        newest = sorted(self.bars, key=lambda bar: -bar.begin_ns)[:TABLE_ROWS]
        rows = ((utc(bar.begin_ns), bar.lane, bar.name, bar.word, seconds(bar.seconds)) for bar in newest)
        return Table(("from", "what", "name", "outcome", "took"), tuple(rows))

    def draw(self) -> Figure:
        """The figure for plotly.js."""
        figure = paper(self.title, height=240, x="UTC", y="")
        looks = {look.word: (look.colour, SHAPES.get(verdict, "")) for verdict, look in LOOKS.items()}
        for word in dict.fromkeys(bar.word for bar in self.bars):
            bars = [bar for bar in self.bars if bar.word == word]
            lane_colour = {GAPS: (INK, "x"), JOBS: (PEER, ""), RUNS: (BLUE, "")}[bars[0].lane]
            colour, shape = looks.get(word, lane_colour)
            figure.add_bar(**self._drawn(bars), name=label(word), marker={"color": colour, "pattern": {"shape": shape}})
        figure.update_layout(barmode="overlay", bargap=0.3)
        figure.update_yaxes(categoryorder="array", categoryarray=[GAPS, RUNS, JOBS], showgrid=False)
        return along_time(figure, range=[moment(ns) for ns in self._shown])

    @property
    def _shown(self) -> tuple[int, int]:
        """The part of the time in which anything happened, and a little around it."""
        begin = max(self.from_ns, min(bar.begin_ns for bar in self.bars))
        end = min(self.to_ns, max(bar.end_ns for bar in self.bars))
        margin = max(end - begin, NS_A_MINUTE) // 20
        return max(self.from_ns, begin - margin), min(self.to_ns, end + margin)

    def _drawn(self, bars: Sequence[Bar]) -> dict[str, object]:
        begin, end = self._shown
        least = (end - begin) * SHORTEST / 1e6
        return {
            "orientation": "h",
            "y": [bar.lane for bar in bars],
            "base": [iso(max(bar.begin_ns, self.from_ns)) for bar in bars],
            "x": [max((min(bar.end_ns, self.to_ns) - max(bar.begin_ns, self.from_ns)) / 1e6, least) for bar in bars],
            "customdata": [f"{label(bar.name)}: {label(bar.word)}, {seconds(bar.seconds)}" for bar in bars],
            "hovertemplate": "%{customdata}<extra></extra>",
        }

    def _of(self, lane: str) -> list[Bar]:
        return [bar for bar in self.bars if bar.lane == lane]


def timeline(history: NodeHistory) -> Timeline | None:
    """The figure of a node, or None where nothing happened on it; what has not ended goes on to the end."""
    bars = [Bar(GAPS, "gap", "no samples", gap.begin_ns, gap.end_ns) for gap in history.gaps]
    for run in history.runs:
        if run.started_ns is not None:
            word = LOOKS[Verdict(run.verdict)].word if run.verdict else str(run.state)
            bars.append(Bar(RUNS, run.run_id, word, run.started_ns, run.ended_ns or history.to_ns))
    for job in history.jobs:
        if job.started_ns is not None:
            bars.append(Bar(JOBS, job.job_id, "job", job.started_ns, job.ended_ns or history.to_ns))
    return Timeline(tuple(bars), history.from_ns, history.to_ns) if bars else None
