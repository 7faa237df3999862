"""Causes that explanations name on the lab's runs, against what was injected.

Split: by the order of time, as the samples' tag `split` has it. Causes, thresholds and evidence were chosen on `train`
and `calibrate`, and on one validation plan of seed 7; `test` was looked at last. A run is compared with all other runs
of its cohort, three quarters of which are disturbed. The tags and the injections tell the truth; no explanation sees
them. A run's slowdown is its time over the median of its cohort's runs into which nothing was injected.

Two cores hold some causes not apart: processes that copy memory, write to the disk, send through the links or belong to
a neighbour's job take the ranks' cores, and that is what costs the time. These five count as one group. A CPU quota is
recognised by its group's own counters where they were sampled in time, and else looks like waiting for a core.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from math import inf
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np
import pandas as pd

from benchmarks.accuracy.lab_before import STEPS
from benchmarks.accuracy.lost import delays_of, injected_and_lost
from benchmarks.accuracy.row import Row
from crosswind.data.samples.lab_runs import load_lab_samples
from crosswind.data.schema.answers.explanations import Explanation, Verdict
from crosswind.data.schema.run import Run, cohort_key
from crosswind.data.store.features import all_runs
from crosswind.data.store.store import Store
from crosswind.models.explain.cohort.columns import COLUMNS
from crosswind.models.explain.cohort.read import read_segments
from crosswind.models.explain.cohort.segments import Segments
from crosswind.models.explain.culprit_node import culprit_node
from crosswind.models.explain.explain import explain

CORES_TAKEN = frozenset({"cpu_contention"})
FABRIC = frozenset({"network", "link_rate", "packet_loss"})
TRUTH: Mapping[str, frozenset[str]] = {
    **dict.fromkeys(("cpu_hog", "disk_pressure", "memory_traffic", "neighbour_job", "neighbour_traffic"), CORES_TAKEN),
    "cpu_quota": frozenset({"cpu_quota", "cpu_contention"}),
    "late_checkpoint": frozenset({"slow_checkpoint"}),
    "latency": frozenset({"network"}),
    "packet_loss": frozenset({"packet_loss"}),
    "rate_cap": frozenset({"link_rate"}),
    "pause": frozenset({"stall"}),
    "slow_input": frozenset({"slow_input"}),
    "slow_rank": frozenset({"slow_compute"}),
}
OF_ONE_RANK = frozenset({"cpu_quota", "late_checkpoint", "pause", "slow_input", "slow_rank"})
KNOWN_SECONDS = frozenset({"slow_input", "slow_rank"})  # ms a step
SLOW, BARELY = 1.10, 1.05
# Of a fault's cost, over the usual time.
SIZES = {"below 5 %": (-inf, 0.05), "5 to 10 %": (0.05, 0.1), "10 to 25 %": (0.1, 0.25), "above 25 %": (0.25, inf)}
STOLEN = "cpu_steal"  # what the machine's host takes is nobody's injection, and no false alarm
_STEPS = """
select run_id, step, rank, tail_seconds, input_seconds, compute_seconds, checkpoint_seconds, other_seconds
from step where run_id in (select unnest(?))
"""


@dataclass(frozen=True)
class ExplainedRun:
    """A run with what was injected into it, how much slower it was, its steps' rows, and its explanation."""

    run: Run
    kinds: frozenset[str]
    nodes: frozenset[str]  # into which it was injected
    slowdown: float
    usual: float  # seconds a step of the cohort's undisturbed runs
    fabric: float  # of this run, less theirs
    explanation: Explanation
    rows: pd.DataFrame

    @cached_property
    def cost(self) -> float:
        """By how much the fault alone slowed the run, over its cohort's usual time.

        Of a delay of one rank that is what was lost by it; of links the time that the fabric took beyond the usual one;
        taken cores show in the whole run alone.
        """
        if self.kinds <= KNOWN_SECONDS:
            [delay] = delays_of(self.run, STEPS)
            return injected_and_lost(self.rows, delay)[1] / self.explanation.steps / self.usual
        if all(TRUTH[kind] & FABRIC for kind in self.kinds):
            return self.fabric / self.usual
        return self.slowdown - 1

    @property
    def is_right(self) -> bool:
        """Return whether the cause named first is one that was injected."""
        return any(self.explanation.cause in TRUTH[kind] for kind in self.kinds)

    @property
    def has_all(self) -> bool:
        """Return whether every cause that was injected is named, at whichever place."""
        named = {self.explanation.cause, *self.explanation.also}
        return all(named & TRUTH[kind] for kind in self.kinds)

    @property
    def is_right_place(self) -> bool:
        """Return whether it is at least of the right part: computing, or the links."""
        is_link = any(TRUTH[kind] & FABRIC for kind in self.kinds)
        return self.is_right or (is_link and self.explanation.cause in FABRIC)

    @property
    def is_alarm(self) -> bool:
        """Return whether it is called slow."""
        return self.explanation.verdict is Verdict.SLOW

    @property
    def is_noticed(self) -> bool:
        """Return whether anything is said of it: slow, perhaps slow, or delayed by a rank."""
        return self.explanation.verdict is not Verdict.NORMAL

    @cached_property
    def is_covered(self) -> tuple[bool, bool]:
        """Return whether the interval of the injected cause's share holds the seconds injected, and those lost."""
        [delay] = delays_of(self.run, STEPS)
        shares = [share.seconds for share in self.explanation.shares if share.cause in TRUTH[delay.kind]]
        truths = injected_and_lost(self.rows, delay)
        injected, lost = (any(share.low <= truth <= share.high for share in shares) for truth in truths)
        return injected, lost


def explained_runs(store: Store, runs: Sequence[Run], *, splits: Sequence[str]) -> list[ExplainedRun]:
    """Those of the lab's runs that are of these parts of the split, each explained against all."""
    segments = read_segments(store, runs)
    run_ids = [run.run_id for run in runs]
    steps = {str(run_id): rows for run_id, rows in store.lake.frame(_STEPS, [run_ids]).groupby("run_id")}
    with store.catalog.read() as session:
        injected = session.injections.of_runs(run_ids)
    into = {run_id: [injection for injection in injected if injection.run_id == run_id] for run_id in run_ids}
    kinds = {run_id: frozenset(fault.kind for fault in faults) for run_id, faults in into.items()}
    cohorts: dict[str, list[Run]] = {}
    for run in runs:
        cohorts.setdefault(cohort_key(run), []).append(run)
    cases = []
    for members in cohorts.values():
        quiet = [segments[run.run_id] for run in members if not kinds[run.run_id]]
        usual, fabric = float(np.median([member.time for member in quiet])), float(np.median([*map(_fabric, quiet)]))
        for run in members:
            if run.tags["split"] in splits:
                run_id = run.run_id
                others = [segments[other.run_id] for other in members if other is not run]
                explanation = explain(run_id, segments[run_id], others)
                explanation = replace(explanation, culprit_node=culprit_node(store, run, explanation))
                nodes = frozenset(injection.node for injection in into[run_id])
                slowdown, beyond = segments[run_id].time / usual, _fabric(segments[run_id]) - fabric
                case = ExplainedRun(run, kinds[run_id], nodes, slowdown, usual, beyond, explanation, steps[run_id])
                cases.append(case)
    return cases


def _fabric(run: Segments) -> float:
    return float(run.means[COLUMNS.index("fabric")])


def figures(runs: Sequence[ExplainedRun]) -> dict[str, float]:
    """Shares of the runs, and how many runs they are shares of; weak faults and pairs are counted apart."""
    single, pairs = [case for case in runs if len(case.kinds) == 1], [case for case in runs if len(case.kinds) > 1]
    slow = [case for case in single if case.slowdown >= SLOW]
    barely = [case for case in single if BARELY <= case.slowdown < SLOW]
    caused = [case for case in slow if case.cost >= SLOW - 1]
    mildly = [case for case in single if BARELY - 1 <= case.cost < SLOW - 1]
    named = [case for case in single if case.is_right]
    placed = [case for case in named if case.slowdown >= SLOW and case.kinds & OF_ONE_RANK]
    linked = [case for case in named if case.slowdown >= SLOW and all(TRUTH[kind] & FABRIC for kind in case.kinds)]
    covered = [case.is_covered for case in named if case.kinds <= KNOWN_SECONDS]
    quiet = [case for case in runs if not case.kinds]
    return {
        "named_of_slow": _share([case.is_right for case in slow]),
        "first_or_also_of_slow": _share([case.has_all for case in slow]),
        "right_place_of_slow": _share([case.is_right_place for case in slow]),
        "slow": len(slow),
        "named_of_slowed_by_it": _share([case.is_right for case in caused]),
        "slowed_by_it": len(caused),
        "named_of_barely_slow": _share([case.is_right for case in barely]),
        "barely_slow": len(barely),
        "named_of_barely_slowed_by_it": _share([case.is_right for case in mildly]),
        "barely_slowed_by_it": len(mildly),
        "both_of_pairs": _share([case.has_all for case in pairs]),
        "pairs": len(pairs),
        "rank_right": _share([case.explanation.culprit_rank in _ranks(case.run) for case in placed]),
        "rank_wrong": _share([case.explanation.culprit_rank not in {None, *_ranks(case.run)} for case in placed]),
        "node_right_of_links": _share([case.explanation.culprit_node in case.nodes for case in linked]),
        "node_wrong_of_links": _share([case.explanation.culprit_node not in {None, *case.nodes} for case in linked]),
        "linked": len(linked),
        "false_alarms": _share([case.is_alarm for case in quiet]),
        "false_alarms_but_stolen": _share([case.is_alarm and case.explanation.cause != STOLEN for case in quiet]),
        "false_alarms_of_usual_time": _share([case.is_alarm for case in quiet if case.slowdown < BARELY]),
        "perhaps_of_undisturbed": _share([case.explanation.verdict is Verdict.PERHAPS_SLOW for case in quiet]),
        "undisturbed": len(quiet),
        "interval_holds_injected": _share([injected for injected, _ in covered]),
        "interval_holds_lost": _share([lost for _, lost in covered]),
        "known": len(covered),
        "largest_gap_seconds": max(map(_gap, runs)),
    }


ASKED = (
    "named first >= 95 % of runs slower by 10 %, >= 80 % of 5-10 %; both of pairs >= 80 %; rank >= 95 %; "
    "false alarms <= 2 %; gap <= 1e-6 s; interval holds what was lost 85-95 %"
)


def holds(scores: Mapping[str, float]) -> bool:
    """Return whether all that is asked is reached; what was not measured is left out."""
    least = {"named_of_slow": 0.95, "named_of_barely_slow": 0.8, "both_of_pairs": 0.8, "rank_right": 0.95}
    is_named = all(not scores[name] < limit for name, limit in least.items())
    is_even = scores["false_alarms"] <= 0.02 and scores["largest_gap_seconds"] <= 1e-6
    return is_named and is_even and not (scores["interval_holds_lost"] < 0.85 or scores["interval_holds_lost"] > 0.95)


def by_step_time(runs: Sequence[ExplainedRun]) -> dict[str, float]:
    """Return what a step time alone can say: slow above 1.1 times the usual one, and the commonest cause."""
    slow = [case for case in runs if len(case.kinds) == 1 and case.slowdown >= SLOW]
    quiet = [case for case in runs if not case.kinds]
    return {
        "named_of_slow": _share([any(TRUTH[kind] == CORES_TAKEN for kind in case.kinds) for case in slow]),
        "false_alarms": _share([case.slowdown >= SLOW for case in quiet]),
    }


def rows() -> list[Row]:
    """The test part; and what was reached where everything was chosen."""
    with TemporaryDirectory() as folder, Store.open(Path(folder) / "store") as store:
        load_lab_samples(store)
        runs = [run for run in all_runs(store) if "split" in run.tags]
        test, chosen_on = (explained_runs(store, runs, splits=splits) for splits in (["test"], ["train", "calibrate"]))
    ours = figures(test)
    return [
        Row(
            task="lab: cause named first",
            split="86 latest runs of 407, each against its cohort; chosen on the 321 before",
            rows=len(test),
            figures=ours,
            asked=ASKED,
            holds=holds(ours),
            baselines={"by_step_time": by_step_time(test), "ours_where_chosen": figures(chosen_on)},
            note=f"{by_kind(test)}; {by_size(test)}; where chosen: {by_size(chosen_on)}",
        )
    ]


def by_size(runs: Sequence[ExplainedRun]) -> str:
    """Return of single faults, by what the fault alone cost, how many were noticed at all, and named rightly."""
    single = [case for case in runs if len(case.kinds) == 1]
    sizes = {size: [case for case in single if low <= case.cost < high] for size, (low, high) in SIZES.items()}
    return "cost of the fault " + ", ".join(
        f"{size}: {sum(case.is_noticed for case in of_size)} of {len(of_size)} noticed, "
        f"{sum(case.is_right for case in of_size)} named"
        for size, of_size in sizes.items()
    )


def by_kind(runs: Sequence[ExplainedRun]) -> str:
    """Return how many of each kind, and of both strengths and of pairs, were named as asked."""
    groups = {
        "slower by 10 %": [(case, case.is_right) for case in runs if len(case.kinds) == 1 and case.slowdown >= SLOW],
        "by 5 to 10 %": [(case, case.is_right) for case in runs if len(case.kinds) == 1 and case.slowdown < SLOW],
        "pairs, both": [(case, case.has_all) for case in runs if len(case.kinds) > 1],
    }
    groups["by 5 to 10 %"] = [(case, right) for case, right in groups["by 5 to 10 %"] if case.slowdown >= BARELY]
    return "; ".join(f"{name}: {_of_kinds(judged)}" for name, judged in groups.items() if judged)


def _of_kinds(judged: Sequence[tuple[ExplainedRun, bool]]) -> str:
    names = ["+".join(sorted(case.kinds)) for case, _ in judged]
    right = {name: [truth for other, (_, truth) in zip(names, judged, strict=True) if other == name] for name in names}
    return ", ".join(f"{name} {sum(truths)} of {len(truths)}" for name, truths in sorted(right.items()))


def _ranks(run: Run) -> set[int]:
    return {delay.rank for delay in delays_of(run, STEPS)}


def _gap(case: ExplainedRun) -> float:
    """By how much shares and what is unexplained miss the excess, in seconds."""
    explanation = case.explanation
    if explanation.excess is None or explanation.unexplained is None:
        return 0.0
    shares = sum(share.seconds.value for share in explanation.shares)
    return abs(shares + explanation.unexplained.value - explanation.excess.value)


def _share(truths: Sequence[bool]) -> float:
    return float(np.mean(truths)) if truths else float("nan")
