"""Comparison of two runs of one workload: one took longer by more steps, and by slower ones, split among causes.

seconds A - seconds B = (steps A - steps B) x B's time a step + steps A x (A's time a step - B's). The second part goes
to the causes by their evidence, exactly as the excess of a run over its cohort does; B takes the cohort's place.
"""

from collections.abc import Mapping, Sequence
from dataclasses import replace

import numpy as np

from crosswind.data.schema.answers.explanations import CauseShare, Comparison
from crosswind.data.schema.errors import InvalidInputError
from crosswind.data.schema.run import Run
from crosswind.data.schema.words import opening, words
from crosswind.data.store.store import Store
from crosswind.models.explain.actions import WATCH
from crosswind.models.explain.cohort.columns import COLUMNS
from crosswind.models.explain.cohort.read import read_segments
from crosswind.models.explain.cohort.reference import TIME, Reference
from crosswind.models.explain.cohort.segments import Segments
from crosswind.models.explain.explain import FEWEST_SEGMENTS
from crosswind.models.explain.shares import excess_of, shares_of, unexplained_of
from crosswind.models.explain.significance import SMALLEST_SHARE
from crosswind.models.explain.split import resampled, split

RECORDED = ("argument.", "environment.", "git.")  # tags by which runs of one cohort may differ
COMMANDS = ("launcher", "collectives")
SAID = 0.005  # of the faster run's time a step, below which a difference is not worth a word


def compare_runs(store: Store, first_id: str, second_id: str) -> Comparison:
    """Explain why one of two runs took longer a step than the other.

    Raises: NotFoundError; InvalidInputError for one run twice, two workloads, or a run with too few steps.
    """
    if first_id == second_id:
        raise InvalidInputError(f"run {first_id} is compared with itself: expected two runs")
    with store.catalog.read() as session:
        runs = {run_id: session.runs.get(run_id) for run_id in (first_id, second_id)}
    first, second = runs.values()
    if first.workload != second.workload:
        both = f"{first_id} is of workload {first.workload!r}, {second_id} of {second.workload!r}"
        raise InvalidInputError(f"{both}: expected one workload")
    segments = read_segments(store, list(runs.values()))
    for run_id in runs:
        if run_id not in segments or len(segments[run_id].values) < FEWEST_SEGMENTS:
            raise InvalidInputError(f"run {run_id} has fewer than {FEWEST_SEGMENTS} comparable steps. {WATCH}")
    slower, faster = sorted(segments.values(), key=lambda run: run.time, reverse=True)
    return compare(slower, faster, differing=_differing(runs[slower.run_id], runs[faster.run_id]))


def compare(slower: Segments, faster: Segments, *, differing: Mapping[str, tuple[str, str]]) -> Comparison:
    """Compare the segments of two runs, of which the first has the longer time a step."""
    random = np.random.default_rng(1)
    reference = Reference(faster.means[None, :], faster.means, dict.fromkeys((*COLUMNS, TIME), 0.0))
    again = resampled(slower.values, random) - resampled(faster.values, random)
    parts = split(slower.means, reference, again=again)
    steps, usual = len(slower.values), faster.time
    shares = tuple(shares_of(parts, steps))
    comparison = Comparison(
        slower=slower.run_id,
        faster=faster.run_id,
        sentence="",
        slower_steps=steps,
        faster_steps=len(faster.values),
        slower_seconds=slower.time * steps,
        faster_seconds=usual * len(faster.values),
        more_steps_seconds=usual * (steps - len(faster.values)),
        difference=excess_of(parts, steps),
        shares=shares,
        also=_also(shares, usual * steps),
        unexplained=unexplained_of(parts, steps),
        differing=differing,
    )
    return replace(comparison, sentence=_sentence(comparison, usual))


def _sentence(comparison: Comparison, usual: float) -> str:
    whole = usual * comparison.slower_steps
    low, high = (1 + bound / whole for bound in (comparison.difference.low, comparison.difference.high))
    times = (
        f"{1 + comparison.difference.value / whole:.3g}x [{low:.3g}-{high:.3g}] the time a step of {comparison.faster}"
    )
    if comparison.difference.low <= 0 or comparison.difference.value < SAID * whole:
        return f"No difference to speak of: {comparison.slower} took {times}."
    largest = comparison.shares[0] if comparison.shares else None
    if largest is None or largest.seconds.value <= max(comparison.unexplained.value, 0.0):
        return f"{comparison.slower} took {times}; no cause has enough evidence."
    text = f"{comparison.slower} took {times}. {opening(largest.cause)} took {_part(largest, comparison)} of that."
    others = [share for share in comparison.shares[1:] if share.cause in comparison.also]
    further = ", ".join(f"{words(share.cause)} {_part(share, comparison)}" for share in others)
    return f"{text} Also: {further}." if further else text


def _part(share: CauseShare, comparison: Comparison) -> str:
    return f"{share.seconds.value / comparison.difference.value:.0%}"


def _also(shares: Sequence[CauseShare], whole: float) -> tuple[str, ...]:
    """Return further causes to mention: those surely above nothing and large enough."""
    return tuple(
        share.cause for share in shares[1:] if share.seconds.low > 0 and share.seconds.value > SMALLEST_SHARE * whole
    )


def _differing(slower: Run, faster: Run) -> dict[str, tuple[str, str]]:
    facts = {run.run_id: recorded_facts(run) for run in (slower, faster)}
    first, second = facts[slower.run_id], facts[faster.run_id]
    names = sorted(first.keys() | second.keys())
    return {
        name: (first.get(name, "-"), second.get(name, "-")) for name in names if first.get(name) != second.get(name)
    }


def recorded_facts(run: Run) -> dict[str, str]:
    """Return what is recorded of a run and may differ from others, by name, as text."""
    facts = {"system": run.system, "world_size": str(run.world_size), "nodes": ", ".join(run.nodes)}
    facts |= {f"config.{name}": str(value) for name, value in run.configuration.items()}
    facts |= {name: value for name, value in run.tags.items() if name.startswith(RECORDED) or name in COMMANDS}
    facts |= {f"software.{name}": str(value) for name, value in run.software.items()}
    return facts | {f"fact.{name}": str(value) for name, value in run.facts.given.items()}
