"""The Selection page: what sets some runs of a cohort apart from the rest of it."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import TypeVar

import numpy as np

from crosswind.client.local import Local
from crosswind.dashboards.figures.chart import Chart
from crosswind.dashboards.figures.effects import Effect, Effects
from crosswind.dashboards.pages.causes.variability import CohortRow, cohort_named, over_time, runs_of_cohort
from crosswind.dashboards.pages.page import CAUSES, RUN, Page, PageQuery, Place
from crosswind.dashboards.wording import count, number, percent, seconds, utc
from crosswind.data.catalog.runs import RunFilter
from crosswind.data.schema.answers.cohorts import CohortComparison, FeatureDifference, FeatureKind
from crosswind.data.schema.errors import InvalidInputError
from crosswind.data.schema.run import Run
from crosswind.data.schema.run_verdict import RunVerdict
from crosswind.data.schema.words import words
from crosswind.models.cohorts.comparison import compare_selection
from crosswind.models.cohorts.features import TIMES

T = TypeVar("T")
TIME, RATIO = "a time as 2026-01-31T12:00", "a number such as 1.1"
MOST_IDS = 200
SHOWN, DRAWN = 40, 15
ORIGINS = {
    FeatureKind.EVIDENCE: "steps, counters, conditions",
    FeatureKind.CONFIGURATION: "configuration",
    FeatureKind.NODE: "node",
    FeatureKind.SOFTWARE: "software",
    FeatureKind.FACT: "facts",
    FeatureKind.TIME: "time of start",
    FeatureKind.OUTCOME: "outcome",
}


@dataclass(frozen=True)
class Rule:
    """Conditions on the runs selected, None for none: began from and before, ns; times the cohort's median step."""

    from_ns: int | None
    to_ns: int | None
    slower: float | None
    faster: float | None
    run_ids: tuple[str, ...]

    def takes(self, run: Run, ratio: float | None) -> bool:
        """Return whether a run is selected."""
        began = run.started_ns or 0
        is_then = (self.from_ns is None or began >= self.from_ns) and (self.to_ns is None or began < self.to_ns)
        is_slow = self.slower is None or (ratio is not None and ratio >= self.slower)
        is_fast = self.faster is None or (ratio is not None and ratio < self.faster)
        return is_then and is_slow and is_fast and (not self.run_ids or run.run_id in self.run_ids)

    @property
    def words(self) -> str:
        """The rule in words."""
        parts = (
            f"{count(len(self.run_ids), 'run')} by id" if self.run_ids else "",
            f"began {utc(self.from_ns)} or later" if self.from_ns is not None else "",
            f"began before {utc(self.to_ns)}" if self.to_ns is not None else "",
            f"took {number(self.slower)}x the median step or more" if self.slower is not None else "",
            f"took less than {number(self.faster)}x the median step" if self.faster is not None else "",
        )
        return ", ".join(filter(None, parts)) or "every run"


@dataclass(frozen=True)
class FeatureRow:
    """One line of the table; `is_time`: its medians are seconds a step."""

    words: str
    origin: str
    is_time: bool
    difference: FeatureDifference


@dataclass(frozen=True)
class SelectionView:
    """The page's contents; of `tested` features the surest are in the rows."""

    sentence: str
    cohort: CohortRow
    rule: Rule
    selected: tuple[str, ...]
    others: int
    tested: int
    differing: int
    rows: tuple[FeatureRow, ...]
    warnings: tuple[str, ...]
    charts: tuple[Chart, ...]
    next_place: Place | None = None

    title = "Selection"
    is_empty = False


def view(client: Local, query: PageQuery) -> SelectionView:
    """Return what sets the runs selected apart. Raises: InvalidInputError, NotFoundError."""
    rule, cohort = _rule(query), cohort_named(client, _cohort_id(query))
    runs, outcomes = runs_of_cohort(client, RunFilter(since_ns=query.since_ns), cohort.cohort_id)
    selected, others = _parted(rule, runs, outcomes)
    comparison = client.compute(client.store, compare_selection, cohort.cohort_id, selected, others)
    differing = [one for one in comparison.features if one.differs]
    charts = over_time(runs, outcomes, selected), _effects(comparison.features, differing)
    return SelectionView(
        sentence=_sentence(comparison, differing),
        cohort=cohort,
        rule=rule,
        selected=selected,
        others=len(others),
        tested=len(comparison.features),
        differing=len(differing),
        rows=tuple(map(_row, comparison.features[:SHOWN])),
        warnings=comparison.warnings,
        charts=tuple(chart for chart in charts if chart is not None),
    )


PAGE = Page("selection", "/selection", "selection.html", view, CAUSES, table="rows", fill=RUN)


def _cohort_id(query: PageQuery) -> str:
    cohort_id = query.word("cohort")
    if cohort_id is None:
        raise InvalidInputError("query parameter cohort is missing: expected a cohort of the Variability page")
    return cohort_id


def _rule(query: PageQuery) -> Rule:
    run_ids = tuple(dict.fromkeys(filter(None, (query.word("runs") or "").split(","))))
    if len(run_ids) > MOST_IDS:
        raise InvalidInputError(f"query parameter runs: {len(run_ids)} of them, expected {MOST_IDS} at most")
    return Rule(
        from_ns=_stated(query, "from", _ns, TIME),
        to_ns=_stated(query, "to", _ns, TIME),
        slower=_stated(query, "slower", _ratio, RATIO),
        faster=_stated(query, "faster", _ratio, RATIO),
        run_ids=run_ids,
    )


def _stated(query: PageQuery, name: str, read: Callable[[str], T], expected: str) -> T | None:
    value = query.word(name)
    if value is None:
        return None
    try:
        return read(value)
    except (ValueError, OverflowError):
        raise InvalidInputError(f"query parameter {name}={value[:60]!r}: expected {expected}") from None


def _ns(text: str) -> int:
    moment = datetime.fromisoformat(text)
    return round((moment if moment.tzinfo else moment.replace(tzinfo=UTC)).timestamp() * 1e6) * 1000


def _ratio(text: str) -> float:
    value = float(text)
    if not np.isfinite(value):
        raise ValueError(text)
    return value


def _parted(
    rule: Rule, runs: Sequence[Run], outcomes: Mapping[str, RunVerdict]
) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Return the ids of the runs that are selected and of the others, of those that have ended."""
    means = {run_id: one.step_mean_seconds for run_id, one in outcomes.items() if one.step_mean_seconds}
    median = float(np.median(list(means.values()))) if means else 1.0
    ratios = {run_id: mean / median for run_id, mean in means.items()}
    ended = [run for run in runs if run.run_id in outcomes]
    selected = [run.run_id for run in ended if rule.takes(run, ratios.get(run.run_id))]
    return tuple(selected), tuple(run.run_id for run in ended if run.run_id not in selected)


def _row(difference: FeatureDifference) -> FeatureRow:
    return FeatureRow(_name(difference), ORIGINS[difference.kind], _is_time(difference), difference)


def _is_time(difference: FeatureDifference) -> bool:
    return difference.kind is FeatureKind.EVIDENCE and difference.name in TIMES


def _name(difference: FeatureDifference) -> str:
    name, _, value = difference.name.partition("=")
    if difference.kind is FeatureKind.TIME:
        return f"a {value}" if name == "weekday" else f"hours {value}"
    return f"{words(name)} {value}" if value else words(name)


def _sentence(comparison: CohortComparison, differing: Sequence[FeatureDifference]) -> str:
    selected, others = comparison.cohort_runs, comparison.other_runs
    the_runs = f"The {selected} runs selected" if selected != 1 else "The run selected"
    if not selected:
        return "No run of the cohort is selected by these conditions."
    if not comparison.features:
        return f"{the_runs} cannot be compared with the other {others}: too few on one side, or nothing varies."
    if not differing:
        return f"Nothing that is stored sets the {count(selected, 'run')} selected apart from the other {others}."
    more = len(differing) - 1
    rest = f"; {count(more, 'more feature')} {'differs' if more == 1 else 'differ'}" if more else ""
    return f"{the_runs} {_difference(differing[0], others)}{rest}."


def _difference(first: FeatureDifference, others: int) -> str:
    name, is_more = _name(first), first.rho > 0
    own, other = first.cohort_median, first.other_median
    if not first.is_share:
        level = "higher" if is_more else "lower"
        median, against = (f"{seconds(own)} a step", seconds(other)) if _is_time(first) else map(number, (own, other))
        return f"have a {level} {name}: median {median}, against {against} of the other {others}"
    did = {FeatureKind.NODE: "ran on", FeatureKind.TIME: "began on" if name.startswith("a ") else "began in the"}
    often = "more" if is_more else "less"
    shares = f"{percent(own)} of them, {percent(other)} of the other {others}"
    return f"{did.get(first.kind, 'had')} {name} {often} often: {shares}"


def _rounded(difference: FeatureDifference) -> tuple[float, float, float]:
    return round(difference.rho, 3), round(difference.rho_low, 3), round(difference.rho_high, 3)


def _effects(features: Sequence[FeatureDifference], differing: Sequence[FeatureDifference]) -> Effects | None:
    if not features:
        return None
    effects = [Effect(_name(one), *_rounded(one), one.differs, f"q {number(one.q)}") for one in features[:DRAWN]]
    finding = f"{len(differing)} of {count(len(features), 'feature')} differ beyond chance"
    verdicts = ("differs", "may be chance")
    return Effects(tuple(effects), finding, "rank correlation with being selected", verdicts, nothing=0.0)
