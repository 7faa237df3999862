"""The part of a run's time and nodes that others shared with it.

Only the first 90 % of the usual time of a run counts, a part that every run of its cohort has: a slow run lasts longer
and would have more neighbours for that alone.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Self

import numpy as np
import pandas as pd

from crosswind.data.schema.prediction import Floats
from crosswind.models.association.design import Ints
from crosswind.models.association.outcomes import Outcomes

COUNTED = 0.9  # of the usual time: hardly a run is faster
NANOSECONDS = 1e9


@dataclass(frozen=True)
class Spans:
    """Stays at numbered places, (n_stays,) each, in the order of place and begin."""

    row: Ints
    place: Ints
    begin_ns: Ints
    end_ns: Ints

    @classmethod
    def of(cls, place: Ints, begin_ns: Ints, end_ns: Ints) -> Self:
        """Sort stays that come in any order; `row` is the position of each in that order."""
        order = np.lexsort((begin_ns, place)).astype(np.int64)
        return cls(order, place[order], begin_ns[order], end_ns[order])


def overlaps(mine: Spans, others: Spans) -> tuple[Ints, Ints, Ints]:
    """Return pairs of rows of `mine` and `others` that overlap at a place, and for how many ns: (n_pairs,) each."""
    meetings: list[tuple[Ints, Ints, Ints]] = []
    places = np.intersect1d(mine.place, others.place)
    for own, their in zip(_slices(mine, places), _slices(others, places), strict=True):
        meetings.append(_at_one_place(mine, own, others, their))
    if not meetings:
        return (np.empty(0, np.int64),) * 3
    first, second, length = (np.concatenate(parts) for parts in zip(*meetings, strict=True))
    return first, second, length


def _slices(spans: Spans, places: Ints) -> list[slice]:
    bounds = zip(np.searchsorted(spans.place, places), np.searchsorted(spans.place, places, "right"), strict=True)
    return [slice(*bound) for bound in bounds]


def _at_one_place(mine: Spans, own: slice, others: Spans, their: slice) -> tuple[Ints, Ints, Ints]:
    """Pairs at one place: others that began before mine ended, from the first that may have ended after mine began."""
    begins, ends = others.begin_ns[their], others.end_ns[their]
    first = np.searchsorted(np.maximum.accumulate(ends), mine.begin_ns[own], side="right")
    counts = np.maximum(np.searchsorted(begins, mine.end_ns[own]) - first, 0)
    pairs = np.repeat(np.arange(len(counts)), counts)
    other = np.arange(counts.sum()) - np.repeat(np.cumsum(counts) - counts, counts) + first[pairs]
    length = np.minimum(ends[other], mine.end_ns[own][pairs]) - np.maximum(begins[other], mine.begin_ns[own][pairs])
    met = length > 0
    return mine.row[own][pairs[met]], others.row[their][other[met]], length[met]


def meetings_on_nodes(compared: Outcomes, present: pd.DataFrame) -> pd.DataFrame:
    """One row a run and presence that shared a node: `run`, `presence` (row numbers) and `share`.

    share: overlap in time over the run's time, over its number of nodes. Neither the run itself nor its job counts.
    """
    stays = _stays(compared)
    numbers = _numbered(stays["node"], present["node"])
    mine = Spans.of(numbers[0], stays["begin_ns"].to_numpy(), stays["end_ns"].to_numpy())
    others = Spans.of(numbers[1], present["begin_ns"].to_numpy(), present["end_ns"].to_numpy())
    first, second, length = overlaps(mine, others)
    share = length * stays["weight"].to_numpy()[first]
    return _of_others(compared, present, _meetings(stays["run"].to_numpy()[first], second, share))


def meetings_in_groups(compared: Outcomes, present: pd.DataFrame, groups: Mapping[str, str]) -> pd.DataFrame:
    """The same rows for presences on other nodes of the run's groups: switches or racks, by node in `groups`.

    share: overlap in time over the run's time, times the share of the run's nodes in the group, over the group's nodes.
    """
    stays, present = _stays(compared), present.reset_index(drop=True)
    sizes = pd.Series(groups, dtype=object).value_counts()
    stays["group"] = stays["node"].map(groups)
    in_groups = (
        stays.dropna(subset="group")
        .groupby(["run", "group"], as_index=False)
        .agg(begin_ns=("begin_ns", "first"), end_ns=("end_ns", "first"), weight=("weight", "sum"))
    )
    group = present["node"].map(groups)
    theirs = present[group.notna()]
    numbers = _numbered(in_groups["group"], group[group.notna()])
    mine = Spans.of(numbers[0], in_groups["begin_ns"].to_numpy(), in_groups["end_ns"].to_numpy())
    others = Spans.of(numbers[1], theirs["begin_ns"].to_numpy(), theirs["end_ns"].to_numpy())
    first, second, length = overlaps(mine, others)
    run, presence = in_groups["run"].to_numpy()[first], theirs.index.to_numpy()[second]
    weight = in_groups["weight"].to_numpy()[first] / in_groups["group"].map(sizes).to_numpy(np.float64)[first]
    own = pd.MultiIndex.from_frame(stays[["run", "node"]])
    is_apart = ~pd.MultiIndex.from_arrays([run, present["node"].to_numpy()[presence]]).isin(own)
    return _of_others(compared, present, _meetings(run, presence, length * weight)[is_apart])


def _meetings(run: Ints, presence: Ints, share: Floats) -> pd.DataFrame:
    return pd.DataFrame({"run": run, "presence": presence, "share": share})


def _stays(compared: Outcomes) -> pd.DataFrame:
    """One row a run and node; `weight` turns ns on that node into shares of the run's counted time."""
    lengths = np.maximum(np.minimum(COUNTED * compared.usual_seconds, _seconds(compared)) * NANOSECONDS, 1)
    rows = [
        (number, node, run.started_ns, (run.started_ns or 0) + int(length), 1 / (len(set(run.nodes)) * int(length)))
        for number, (run, length) in enumerate(zip(compared.runs, lengths.tolist(), strict=True))
        for node in dict.fromkeys(run.nodes)
    ]
    types = {"run": "int64", "node": "object", "begin_ns": "int64", "end_ns": "int64", "weight": "float64"}
    return pd.DataFrame(rows, columns=list(types)).astype(types)


def _seconds(compared: Outcomes) -> Floats:
    return np.array([run.seconds for run in compared.runs], dtype=np.float64)


def _numbered(one: "pd.Series[str]", other: "pd.Series[str]") -> tuple[Ints, Ints]:
    """Number the names of both series alike."""
    codes = pd.factorize(pd.concat([one, other], ignore_index=True))[0].astype(np.int64)
    return codes[: len(one)], codes[len(one) :]


def _of_others(compared: Outcomes, present: pd.DataFrame, meetings: pd.DataFrame) -> pd.DataFrame:
    """The meetings, without those of a run with itself or with its own job."""
    is_own = np.zeros(len(meetings), np.bool_)
    for name in ("run_id", "job_id"):
        ids = pd.Series([getattr(run, name) for run in compared.runs], dtype=object)
        mine, theirs = _numbered(ids, present[name])
        of_run, of_presence = mine[meetings["run"].to_numpy()], theirs[meetings["presence"].to_numpy()]
        is_own |= (of_run == of_presence) & (of_run >= 0)
    return meetings[~is_own].reset_index(drop=True)
