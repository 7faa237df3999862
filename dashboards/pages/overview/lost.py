"""Node-hours that slow runs lost, by their main causes."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from crosswind.client.local import Local
from crosswind.dashboards.pages.overview.block import ROWS, Block, Column, Kind, Link, Row, address_of
from crosswind.dashboards.wording import count, moment, number
from crosswind.data.catalog.judged_runs import Judged
from crosswind.data.catalog.runs import RunFilter
from crosswind.data.lake.parts import DAY_NS
from crosswind.data.schema.answers.explanations import Verdict
from crosswind.data.schema.words import opening, words

COMPARE = Link("Compare two runs", "compare")
NEWEST = 30_000  # runs that are looked at: a microsecond each
HOUR_SECONDS = 3600
SMALL_HOURS = 0.1  # less is written in seconds


@dataclass(frozen=True)
class Period:
    """So many days up to a moment, ns UTC: now, or the start of the newest run where none began in those days."""

    days: int
    end_ns: int
    is_now: bool

    @property
    def words(self) -> str:
        """The period in words."""
        days = count(self.days, "day")
        if self.is_now:
            return f"the last {days}"
        return f"the {days} up to {moment(self.end_ns):%Y-%m-%d}, when the newest run began"


def lost_hours(client: Local, wanted: RunFilter, days: int, now_ns: int) -> Block:
    """Return the causes that cost most node-hours in so many days, and in the last of them."""
    with client.store.catalog.read() as session:
        newest = session.runs.find(wanted, limit=1)
        period = _period(newest[0].started_ns or 0 if newest else now_ns, days, now_ns)
        of = [
            session.judged_runs.newest(replace(wanted, since_ns=period.end_ns - back * DAY_NS), limit=NEWEST)
            for back in (days, 1)
        ]
    judged = sum(one.runs for one in of[0] if one.verdict not in (None, Verdict.INSUFFICIENT_EVIDENCE))
    slow, lately = map(_by_cause, of)
    ranked = sorted(slow.items(), key=lambda item: -_hours(item[1]))
    total = sum(map(_hours, slow.values()))
    scope = {"system": wanted.system, "workload": wanted.workload, "period": f"{days}d" if period.is_now else None}
    is_cut = sum(one.runs for one in of[0]) >= NEWEST
    among = f"the newest {count(NEWEST, 'run')} of {period.words}" if is_cut else period.words
    return Block(
        "lost",
        _finding(ranked, total, judged, among),
        _columns(period),
        tuple(_row(one, _hours(lately.get(cause)), total, scope) for cause, one in ranked[:ROWS]),
        (Link("All slow runs", address_of("runs", {"verdict": Verdict.SLOW, **scope, "sort": "-excess"})), COMPARE),
    )


def _period(newest_ns: int, days: int, now_ns: int) -> Period:
    is_now = newest_ns >= now_ns - days * DAY_NS
    return Period(days, now_ns if is_now else newest_ns, is_now)


def _by_cause(judged: Sequence[Judged]) -> dict[str, Judged]:
    return {one.cause_or_none or "": one for one in judged if one.verdict == Verdict.SLOW}


def _hours(judged: Judged | None) -> float:
    return 0.0 if judged is None else (judged.node_seconds or 0.0) / HOUR_SECONDS


def _columns(period: Period) -> tuple[Column, ...]:
    last = "Node-hours, last day" if period.is_now else "Node-hours, its last day"
    span = f"Node-hours, {'last ' if period.is_now else ''}{count(period.days, 'day')}"
    hours = (Column(last, Kind.NUMBER), Column(span, Kind.NUMBER))
    return (Column("Cause"), *hours, Column("Share", Kind.SHARE), Column("Runs", Kind.NUMBER))


def _row(one: Judged, last: float, total: float, scope: Mapping[str, str | None]) -> Row:
    hours = _hours(one)
    cause = one.cause_or_none or ""
    address = address_of("runs", {"verdict": Verdict.SLOW, "cause": cause, **scope, "sort": "-excess"})
    return Row(words(cause), address, (last, hours, hours / total if total else None, one.runs))


def _finding(ranked: Sequence[tuple[str, Judged]], total: float, judged: int, among: str) -> str:
    if not judged:
        return f"No run of {among} is judged yet."
    if not ranked:
        return f"No run of {among} was slow, of {count(judged, 'run')} judged."
    cause, one = ranked[0]
    slow = sum(one.runs for _, one in ranked)
    share = f"{number(_hours(one))} of {number(total)} node-hours lost"
    if total < SMALL_HOURS:
        share = f"{number(_hours(one) * HOUR_SECONDS)} of {number(total * HOUR_SECONDS)} node-seconds lost"
    return f"{opening(cause)} cost most in {among}: {share}, in {slow} slow of {count(judged, 'run')}."
