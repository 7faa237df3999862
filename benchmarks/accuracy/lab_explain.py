"""Which cause explanations name on the lab's runs, against what was injected.

Split: by the order of time, as the samples' tag `split` has it. Causes, thresholds and evidence were chosen on `train`
and `calibrate`, and on one validation plan of seed 7; `test` was looked at last. A run is compared with all other runs
of its cohort, three quarters of which are disturbed. The tags and the injections tell the truth; no explanation sees
them. A run's slowdown is its time over the median of its cohort's runs into which nothing was injected.

Two cores hold some causes not apart: processes that copy memory, write to the disk, send through the links or belong to
a neighbour's job take the ranks' cores, and that is what costs the time. These five count as one group. A CPU quota is
told by its group's own counters where they were sampled in time, and else looks like waiting for a core.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np
import pandas as pd

from benchmarks.accuracy.lab_before import STEPS
from benchmarks.accuracy.lost import delays_of, injected_and_lost
from benchmarks.accuracy.row import Row
from crosswind.data.features import all_runs, cohort_key
from crosswind.data.run import Run
from crosswind.data.samples.lab_runs import load_lab_samples
from crosswind.data.store import Store
from crosswind.models.explain.cohort import read_segments
from crosswind.models.explain.culprit_node import culprit_node
from crosswind.models.explain.explain import explain
from crosswind.models.explain.explanation import Explanation, Verdict
from crosswind.models.explain.segments import COLUMNS, Segments

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
STOLEN = "cpu_steal"  # what the machine's host takes is nobody's injection, and no false alarm
_STEPS = """
select run_id, step, rank, tail_seconds, input_seconds, compute_seconds, checkpoint_seconds, other_seconds
from step where run_id in (select unnest(?))
"""


@dataclass(frozen=True)
class Told:
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
        who takes cores is told by the whole run alone.
        """
        if self.kinds <= KNOWN_SECONDS:
            [delay] = delays_of(self.run, STEPS)
            return injected_and_lost(self.rows, delay)[1] / self.explanation.steps / self.usual
        if all(TRUTH[kind] & FABRIC for kind in self.kinds):
            return self.fabric / self.usual
        return self.slowdown - 1

    @property
    def is_right(self) -> bool:
        """Whether the cause named first is one that was injected."""
        return any(self.explanation.cause in TRUTH[kind] for kind in self.kinds)

    @property
    def has_all(self) -> bool:
        """Whether every cause that was injected is named, at whichever place."""
        named = {self.explanation.cause, *self.explanation.also}
        return all(named & TRUTH[kind] for kind in self.kinds)

    @property
    def is_right_place(self) -> bool:
        """Whether it is at least of the right part: computing, or the links."""
        is_link = any(TRUTH[kind] & FABRIC for kind in self.kinds)
        return self.is_right or (is_link and self.explanation.cause in FABRIC)

    @property
    def is_alarm(self) -> bool:
        """Whether it is called slow."""
        return self.explanation.verdict is Verdict.SLOW

    @cached_property
    def is_covered(self) -> tuple[bool, bool]:
        """Whether the interval of the injected cause's share holds what was injected, and what was lost by it."""
        [delay] = delays_of(self.run, STEPS)
        shares = [share.seconds for share in self.explanation.shares if share.cause in TRUTH[delay.kind]]
        truths = injected_and_lost(self.rows, delay)
        injected, lost = (any(share.low <= truth <= share.high for share in shares) for truth in truths)
        return injected, lost


def told(store: Store, runs: Sequence[Run], *, splits: Sequence[str]) -> list[Told]:
    """Those of the lab's runs that are of these parts of the split, each explained against all."""
    segments = read_segments(store, runs)
    run_ids = [run.run_id for run in runs]
    steps = {str(run_id): rows for run_id, rows in store.lake.frame(_STEPS, [run_ids]).groupby("run_id")}
    with store.catalog.read() as session:
        injected = session.injections.of_runs(run_ids)
    into = {run_id: [each for each in injected if each.run_id == run_id] for run_id in run_ids}
    kinds = {run_id: frozenset(each.kind for each in faults) for run_id, faults in into.items()}
    cohorts: dict[str, list[Run]] = {}
    for run in runs:
        cohorts.setdefault(cohort_key(run), []).append(run)
    found = []
    for members in cohorts.values():
        quiet = [segments[run.run_id] for run in members if not kinds[run.run_id]]
        usual, fabric = float(np.median([each.time for each in quiet])), float(np.median([*map(_fabric, quiet)]))
        for run in members:
            if run.tags["split"] in splits:
                run_id = run.run_id
                others = [segments[other.run_id] for other in members if other is not run]
                explanation = explain(run_id, segments[run_id], others)
                explanation = replace(explanation, culprit_node=culprit_node(store, run, explanation))
                nodes = frozenset(each.node for each in into[run_id])
                slowdown, beyond = segments[run_id].time / usual, _fabric(segments[run_id]) - fabric
                told_of = Told(run, kinds[run_id], nodes, slowdown, usual, beyond, explanation, steps[run_id])
                found.append(told_of)
    return found


def _fabric(run: Segments) -> float:
    return float(run.means[COLUMNS.index("fabric")])


def figures(runs: Sequence[Told]) -> dict[str, float]:
    """Shares of the runs, and how many there are of which they are told; weak faults are told apart, and pairs."""
    single, pairs = [each for each in runs if len(each.kinds) == 1], [each for each in runs if len(each.kinds) > 1]
    slow = [each for each in single if each.slowdown >= SLOW]
    barely = [each for each in single if BARELY <= each.slowdown < SLOW]
    caused = [each for each in slow if each.cost >= SLOW - 1]
    mildly = [each for each in single if BARELY - 1 <= each.cost < SLOW - 1]
    named = [each for each in single if each.is_right]
    placed = [each for each in named if each.slowdown >= SLOW and each.kinds & OF_ONE_RANK]
    linked = [each for each in named if each.slowdown >= SLOW and all(TRUTH[kind] & FABRIC for kind in each.kinds)]
    known = [each.is_covered for each in named if each.kinds <= KNOWN_SECONDS]
    quiet = [each for each in runs if not each.kinds]
    return {
        "named_of_slow": _share([each.is_right for each in slow]),
        "first_or_also_of_slow": _share([each.has_all for each in slow]),
        "right_place_of_slow": _share([each.is_right_place for each in slow]),
        "slow": len(slow),
        "named_of_slowed_by_it": _share([each.is_right for each in caused]),
        "slowed_by_it": len(caused),
        "named_of_barely_slow": _share([each.is_right for each in barely]),
        "barely_slow": len(barely),
        "named_of_barely_slowed_by_it": _share([each.is_right for each in mildly]),
        "barely_slowed_by_it": len(mildly),
        "both_of_pairs": _share([each.has_all for each in pairs]),
        "pairs": len(pairs),
        "rank_right": _share([each.explanation.culprit_rank in _ranks(each.run) for each in placed]),
        "rank_wrong": _share([each.explanation.culprit_rank not in {None, *_ranks(each.run)} for each in placed]),
        "node_right_of_links": _share([each.explanation.culprit_node in each.nodes for each in linked]),
        "node_wrong_of_links": _share([each.explanation.culprit_node not in {None, *each.nodes} for each in linked]),
        "linked": len(linked),
        "false_alarms": _share([each.is_alarm for each in quiet]),
        "false_alarms_but_stolen": _share([each.is_alarm and each.explanation.cause != STOLEN for each in quiet]),
        "false_alarms_of_usual_time": _share([each.is_alarm for each in quiet if each.slowdown < BARELY]),
        "perhaps_of_undisturbed": _share([each.explanation.verdict is Verdict.PERHAPS_SLOW for each in quiet]),
        "undisturbed": len(quiet),
        "interval_holds_injected": _share([injected for injected, _ in known]),
        "interval_holds_lost": _share([lost for _, lost in known]),
        "known": len(known),
        "largest_gap_seconds": max(map(_gap, runs)),
    }


ASKED = (
    "named first >= 95 % of runs slower by 10 %, >= 80 % of 5-10 %; both of pairs >= 80 %; rank >= 95 %; "
    "false alarms <= 2 %; gap <= 1e-6 s; interval holds what was lost 85-95 %"
)


def holds(found: Mapping[str, float]) -> bool:
    """Whether all that is asked is reached; what was not measured is left out."""
    least = {"named_of_slow": 0.95, "named_of_barely_slow": 0.8, "both_of_pairs": 0.8, "rank_right": 0.95}
    is_named = all(not found[name] < limit for name, limit in least.items())
    is_even = found["false_alarms"] <= 0.02 and found["largest_gap_seconds"] <= 1e-6
    return is_named and is_even and not (found["interval_holds_lost"] < 0.85 or found["interval_holds_lost"] > 0.95)


def by_step_time(runs: Sequence[Told]) -> dict[str, float]:
    """What a step time alone can say: slow above 1.1 times the usual one, and the commonest cause."""
    slow = [each for each in runs if len(each.kinds) == 1 and each.slowdown >= SLOW]
    quiet = [each for each in runs if not each.kinds]
    return {
        "named_of_slow": _share([any(TRUTH[kind] == CORES_TAKEN for kind in each.kinds) for each in slow]),
        "false_alarms": _share([each.slowdown >= SLOW for each in quiet]),
    }


def rows() -> list[Row]:
    """The test part; and what was reached where everything was chosen."""
    with TemporaryDirectory() as folder, Store.open(Path(folder) / "store") as store:
        load_lab_samples(store)
        runs = [run for run in all_runs(store) if "split" in run.tags]
        test, chosen_on = (told(store, runs, splits=splits) for splits in (["test"], ["train", "calibrate"]))
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
            note=by_kind(test),
        )
    ]


def by_kind(runs: Sequence[Told]) -> str:
    """How many of each kind, and of both strengths and of pairs, were named as asked."""
    groups = {
        "slower by 10 %": [(each, each.is_right) for each in runs if len(each.kinds) == 1 and each.slowdown >= SLOW],
        "by 5 to 10 %": [(each, each.is_right) for each in runs if len(each.kinds) == 1 and each.slowdown < SLOW],
        "pairs, both": [(each, each.has_all) for each in runs if len(each.kinds) > 1],
    }
    groups["by 5 to 10 %"] = [(each, right) for each, right in groups["by 5 to 10 %"] if each.slowdown >= BARELY]
    return "; ".join(f"{name}: {_of_kinds(found)}" for name, found in groups.items() if found)


def _of_kinds(found: Sequence[tuple[Told, bool]]) -> str:
    names = ["+".join(sorted(each.kinds)) for each, _ in found]
    right = {name: [truth for other, (_, truth) in zip(names, found, strict=True) if other == name] for name in names}
    return ", ".join(f"{name} {sum(truths)} of {len(truths)}" for name, truths in sorted(right.items()))


def _ranks(run: Run) -> set[int]:
    return {delay.rank for delay in delays_of(run, STEPS)}


def _gap(each: Told) -> float:
    """By how much shares and what is unexplained miss the excess, in seconds."""
    explanation = each.explanation
    if explanation.excess is None or explanation.unexplained is None:
        return 0.0
    shares = sum(share.seconds.value for share in explanation.shares)
    return abs(shares + explanation.unexplained.value - explanation.excess.value)


def _share(truths: Sequence[bool]) -> float:
    return float(np.mean(truths)) if truths else float("nan")
