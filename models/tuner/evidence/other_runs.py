"""The losses of a run to external causes, by comparison with runs of other configurations: of its own are too few.

The other runs are stretched to the run's time a step, so that shares of time and counts a second compare. How long the
run should have taken is unknown then; the evidence is who else ran on its cores, the trouble on its links, and by how
much one rank came after the others.
"""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from crosswind.data.schema.answers.studies import LostTime
from crosswind.models.explain.causes import BY_NAME
from crosswind.models.explain.causes.cause import Cause, Excess
from crosswind.models.explain.cohort.columns import COLUMNS
from crosswind.models.explain.cohort.reference import FEWEST_RUNS, Reference, reference_of
from crosswind.models.explain.cohort.segments import Segments
from crosswind.models.explain.evidence.step_columns import LOCAL_PHASES, PHASES
from crosswind.models.explain.significance import ComparedShares, student_spreads
from crosswind.models.tuner.evidence.external import AGAINST_OTHERS, ON_ONE_RANK, is_made_by

# Chosen on the lab's runs of `train` and `calibrate`.
SPREADS = 2.75  # of a cause's evidence in the other runs, within which a share is usual
COUNTS_BEYOND = 1.5  # times the most of any other run: counts depend on the configuration, too
OTHERS_LEAST = 0.15  # of the cores' time, below which the cost of others is within the noise
OTHERS_USUAL_MOST = 0.1  # what others take in most runs is usual, up to here
CONTENTION = "cpu_contention"


@dataclass(frozen=True)
class SampledRun:
    """A run: its segments, and the share of its cores' busy time that was others', None where it was not sampled."""

    segments: Segments
    others_share: float | None = None


def losses_by_others(
    run: SampledRun, others: Sequence[SampledRun], parameters: Collection[str], least: float
) -> list[LostTime]:
    """Return the external causes that took at least this share of the run's time, the largest first."""
    stretched = [_stretched(other.segments, run.segments.time) for other in others]
    ratios = {CONTENTION: _others(run, others)} if _others(run, others) >= max(least, OTHERS_LEAST) else {}
    if len(stretched) >= FEWEST_RUNS:
        for name, ratio in (*_whole(run.segments, stretched).items(), *_ranks(run.segments, stretched)):
            if ratio >= least and not is_made_by(name, parameters):
                ratios[name] = max(ratio, ratios.get(name, 0.0))
    lost = [LostTime(name, min(ratio, 1.0), *_interval(name, ratio, run.segments)) for name, ratio in ratios.items()]
    return sorted(lost, key=lambda loss: loss.ratio, reverse=True)


def _stretched(segments: Segments, time: float) -> Segments:
    factor = time / segments.time
    return replace(
        segments, values=segments.values * factor, of_ranks=segments.of_ranks * factor, peers=segments.peers * factor
    )


def _others(run: SampledRun, others: Sequence[SampledRun]) -> float:
    """Return the share of its time that the run lost to others on its cores.

    On full cores what others take is lost; no more than it waited for a core, or for ranks and links meanwhile.
    """
    if run.others_share is None:
        return 0.0
    shares = [other.others_share for other in others if other.others_share is not None]
    usual = min(float(np.median(shares)), OTHERS_USUAL_MOST) if shares else 0.0
    means = dict(zip(COLUMNS, run.segments.means.tolist(), strict=True))
    waited = np.nan_to_num(means["run_queue_wait"]) + means["fabric"]
    return float(min(max(run.others_share - usual, 0.0), waited / run.segments.time))


def _whole(run: Segments, stretched: Sequence[Segments]) -> Mapping[str, float]:
    reference = reference_of(stretched)
    beyond = dict(zip(COLUMNS, (run.means - reference.usual)[:, None], strict=True))
    most = dict(zip(COLUMNS, np.nan_to_num([other.means for other in stretched]).max(axis=0).tolist(), strict=True))
    means = dict(zip(COLUMNS, run.means.tolist(), strict=True))
    beyond |= {phase: np.array([means[phase]]) for phase in LOCAL_PHASES}  # all of it may be too much
    shares = {}
    for name, signs in AGAINST_OTHERS.items():
        if not signs or any(means[sign] > COUNTS_BEYOND * most[sign] for sign in signs):
            shares[name] = _share(BY_NAME[name], Excess(beyond, reference.spread), means, reference) / run.time
    return shares


def _share(cause: Cause, excess: Excess, means: Mapping[str, float], reference: Reference) -> float:
    """Return the seconds that a cause claims where they stand out, else 0.

    Excess is that of a share of the time: without the loss, a usual share u of the rest would be left, so that
    beyond / (1 - u) was lost.
    """
    total = 0.0
    time = sum(means[phase] for phase in PHASES)
    for phase, claim in cause.claims(excess).items():
        usual = float(reference.usual[COLUMNS.index(phase)]) / time if cause.columns == (phase,) else 0.0
        seconds = max(float(np.nan_to_num(claim)[0]), 0.0)
        total += min(seconds / (1 - min(max(usual, 0.0), 0.9)), means[phase])
    spread = float(np.sqrt(np.nansum([reference.spread[column] ** 2 for column in cause.columns])))
    return total if total > student_spreads(reference.runs, SPREADS) * spread else 0.0


def _ranks(run: Segments, stretched: Sequence[Segments]) -> list[tuple[str, float]]:
    """Return the excess of one rank over the others of its run, by cause, where ranks usually differ by less."""
    alike = [other for other in stretched if other.ranks == run.ranks]
    compared = ComparedShares.of_ranks(run, alike) if len(alike) >= FEWEST_RUNS else None
    significant = compared.significant(run.time) if compared else ()
    return [(name, seconds / run.time) for name, _, seconds in significant if name in ON_ONE_RANK]


def _interval(name: str, ratio: float, run: Segments) -> tuple[float, float]:
    """Return the ends of a share's interval: half of it, and the most that it can have been.

    A share of links is bounded by the time of the links, others by half as much again: how far a share lies from the
    truth in the lab's runs.
    """
    is_link = BY_NAME[name].columns == ("fabric",)
    most = float(run.means[COLUMNS.index("fabric")]) / run.time if is_link else 1.5 * ratio
    return ratio / 2, min(max(most, ratio), 1.0)
