"""Time to train of MLPerf's configurations, asked before they ran, through the client on stores of their result logs.

Each part that is left out has a store of its own, filled by `crosswind ingest` with the logs of all other runs; a
question is what the reader makes of a run's log before its training begins. A submitter is the folder of its logs, for
many left a placeholder in the log; the log's own `submitter` would let one site's runs stand on both sides. Baselines
have features made by hand, the devices' figures and the round's date among them. Needs ../shared/data.
"""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Protocol, Self

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from benchmarks.accuracy.asked import Asked, Scores, ask, ran
from benchmarks.accuracy.mlperf_baselines import LogLinear, NearestWithScalingLaw, Xgboost
from benchmarks.accuracy.mlperf_logs import write
from benchmarks.accuracy.mlperf_table import FEATURES, RUNS, configurations, runs
from benchmarks.accuracy.row import Row
from benchmarks.accuracy.store import Files, filled
from crosswind.data.schema.answers.predictions import Outcome
from crosswind.data.schema.prediction import Floats
from crosswind.models.surrogate.validation import LeaveGroupOut

PARTS = 12  # of submitters, of accelerator families
RUNS_EACH = 5  # of a configuration, the first: filling a store with all 16,755 takes more than a minute
LARGE = 64
WORSE = 1.1  # times the errors of the classes with features made by hand, at most
DATA_LINE = "MLPerf training and HPC rounds, closed division, medians of the successful runs of a configuration"
# Of the classes with features made by hand, measured before questions went through the client: every run of a
# configuration counted, its round's date was asked too, and coverage is of medians; without BERT's `train_samples`.
BEFORE: Mapping[str, Mapping[str, float]] = {
    "leave_one_submitter_out": {"mape": 0.205, "median_ape": 0.078, "coverage_90": 0.901},
    "leave_accelerator_family_out": {"mape": 0.332, "median_ape": 0.202, "coverage_90": 0.888},
    "rounds_2.0_to_2.1": {"mape": 0.244, "median_ape": 0.113, "coverage_90": 0.929},
    "rounds_3.0_to_3.1": {"mape": 0.134, "median_ape": 0.117, "coverage_90": 0.989},
    "rounds_4.0_to_4.1": {"mape": 0.203, "median_ape": 0.076, "coverage_90": 0.863},
    "at_most_64_to_more": {"mape": 0.406, "median_ape": 0.377, "coverage_90": 0.946},
}
ERRORS = ("mape", "median_ape")
CLASSES = "before: classes by hand"
UNASKED = "its logs do not say on how many processes it ran"
Mask = NDArray[np.bool_]
Masks = list[tuple[Mask, Mask]]


class Predictor(Protocol):
    def fit(self, X: pd.DataFrame, y: Floats) -> Self: ...
    def minutes(self, X: pd.DataFrame) -> Floats: ...


BASELINES: Mapping[str, Callable[[], Predictor]] = {
    "log_linear": LogLinear,
    "nearest_and_scaling_law": NearestWithScalingLaw,
    "xgboost": Xgboost,
}


@dataclass(frozen=True)
class Submissions:
    """Configurations as a table for splits and baselines, their logs, and the questions that they answer."""

    table: pd.DataFrame
    files: Mapping[str, Files]
    asked: Mapping[str, Asked]

    @classmethod
    def of(cls, all_runs: pd.DataFrame, folder: Path) -> Self:
        """Write the logs, and ask a store of all of them what was run."""
        files = write(all_runs, folder)
        with filled(files.values()) as client:
            return cls(configurations(all_runs), files, _questions(ran(client, Outcome.RUN), all_runs))

    def scores(self, masks: Masks) -> Scores:
        """Scores of all parts, each asked from a store of what is left."""
        return Scores.together(self._part(training, asked) for training, asked in masks)

    def _part(self, training: Mask, asked: Mask) -> Scores:
        names = self.table.index.to_numpy(dtype=str)
        questions = [self.asked[name] for name in names[asked] if name in self.asked]
        with filled([self.files[name] for name in names[training]], train=Outcome.RUN) as client:
            scores = ask(client, questions, Outcome.RUN)
        return replace(scores, refused=(*scores.refused, *([UNASKED] * (int(asked.sum()) - len(questions)))))


def _questions(stored: pd.DataFrame, all_runs: pd.DataFrame) -> dict[str, Asked]:
    """Return the question about the first run of each configuration, and the seconds of all of its runs."""
    place = [all_runs["submitter_dir"] + " " + all_runs["acc_family"], all_runs["benchmark"]]
    times = [all_runs[name].astype("int64") * 10**6 for name in ("run_start_ms", "run_stop_ms")]
    config_of = dict(zip(zip(*place, *times, strict=True), all_runs["config_id"], strict=True))
    keys = zip(stored["system"], stored["workload"], stored["started_ns"], stored["ended_ns"], strict=True)
    named = stored.assign(config=[config_of[key] for key in keys])
    return {
        str(config): Asked(of_config["question"].iloc[0], tuple(of_config["seconds"].to_numpy(np.float64).tolist()))
        for config, of_config in named.groupby("config")
    }


def leaving_out(table: pd.DataFrame, column: str) -> Masks:
    """All other parts' rows and one part's; a group is never divided, and the small ones share a part.

    This is harder than leaving out every group by itself, for less is learned from, and takes a quarter of the time.
    """
    return list(LeaveGroupOut(column, PARTS).pairs(table))


def later(table: pd.DataFrame, first: float, end: float) -> Masks:
    """Rounds before `first` and the workloads of those up to `end` that these have."""
    earlier, new = ((table["published"] < first).to_numpy(), table["published"].between(first, end).to_numpy())
    return [(earlier, new & table["workload"].isin(table["workload"][earlier]).to_numpy())]


def larger(table: pd.DataFrame) -> Masks:
    large = (table["ranks"] > LARGE).to_numpy()
    return [(~large, large)]


def errors(make: Callable[[], Predictor], table: pd.DataFrame, masks: Masks) -> Floats:
    """Absolute percentage errors of a baseline as ratios, of the rows asked about."""
    minutes = table["minutes"].to_numpy()
    result = np.full(len(table), np.nan)
    for training, asked in masks:
        model = make().fit(table.loc[training, FEATURES], minutes[training])
        result[asked] = np.abs(model.minutes(table.loc[asked, FEATURES]) / minutes[asked] - 1)
    return np.asarray(result[~np.isnan(result)], np.float64)


def figures(ape: Floats) -> dict[str, float]:
    return {"mape": float(ape.mean()), "median_ape": float(np.median(ape))}


def _row(task: str, submissions: Submissions, masks: Masks) -> Row:
    scores, before = submissions.scores(masks), BEFORE[task]
    others = {name: figures(errors(make, submissions.table, masks)) for name, make in BASELINES.items()}
    ours = scores.figures()
    close = all(ours[name] <= WORSE * before[name] for name in ERRORS)
    asked = "each error at most 1.1 times that of the classes, and coverage of 90 % within its noise"
    holds = close and scores.covers and not scores.refused
    return Row(task, f"{task}: {DATA_LINE}", _count(masks), ours, asked, holds, {CLASSES: before, **others})


def _later_row(task: str, submissions: Submissions, first: float, end: float) -> Row:
    masks = later(submissions.table, first, end)
    row = _row(task, submissions, masks)
    gain = 1 - row.figures["mape"] / row.baselines["nearest_and_scaling_law"]["mape"]
    covers = row.figures["coverage_90_low"] <= 0.9 <= row.figures["coverage_90_high"]
    split = f"learned from rounds before {first}, asked about those up to {end}, workloads seen before: {DATA_LINE}"
    return replace(
        row,
        split=split,
        figures={**row.figures, "gain_over_nearest": gain},
        asked="MAPE below nearest + scaling law, and coverage of 90 % within its noise",
        holds=gain > 0 and covers and not row.figures.get("refused"),
    )


def _repeats_row(all_runs: pd.DataFrame, folder: Path) -> Row:
    """The last run of each configuration that ran twice at least, from all that were no last run."""
    ordered = all_runs.sort_values("run_start_ms")
    last = ordered.duplicated("config_id") & ~ordered.duplicated("config_id", keep="last")
    folder.mkdir()
    with filled(write(ordered[last], folder).values()) as client:
        questions = [Asked(row.question, (row.seconds,)) for row in ran(client, Outcome.RUN).itertuples()]
    with filled(write(ordered[~last], folder).values(), train=Outcome.RUN) as client:
        scores = ask(client, questions, Outcome.RUN)
    medians = ordered[~last].groupby("config_id")["ttt_min"].median().reindex(ordered["config_id"][last])
    naive = np.abs(medians.to_numpy() / ordered["ttt_min"][last].to_numpy() - 1)
    return Row(
        "the next run of a configuration that ran",
        "the last run of each configuration, a store of all the others: no order of time between configurations",
        len(questions),
        scores.figures(),
        "coverage of 90 % within its noise",
        scores.covers and not scores.refused,
        {"median of its earlier runs": figures(naive)},
    )


def _count(masks: Masks) -> int:
    return int(sum(asked.sum() for _, asked in masks))


def _rows(folder: Path) -> Iterator[Row]:
    all_runs = runs().sort_values("run_start_ms").groupby("config_id").head(RUNS_EACH)
    submissions = Submissions.of(all_runs, folder)
    table = submissions.table
    yield _row("leave_one_submitter_out", submissions, leaving_out(table, "site"))
    yield _row("leave_accelerator_family_out", submissions, leaving_out(table, "family"))
    yield _later_row("rounds_2.0_to_2.1", submissions, 2022.0, 2022.85)
    yield _later_row("rounds_3.0_to_3.1", submissions, 2022.85, 2024.0)
    yield _later_row("rounds_4.0_to_4.1", submissions, 2024.0, 2025.0)
    yield _row(f"at_most_{LARGE}_to_more", submissions, larger(table))
    yield _repeats_row(all_runs, folder / "repeats")


def rows() -> list[Row]:
    """A row a question; none where the data is not beside the repository."""
    if not RUNS.is_file():
        return []
    with TemporaryDirectory(prefix="crosswind-accuracy-") as folder:
        return list(_rows(Path(folder)))
