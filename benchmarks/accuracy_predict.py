"""Skill of the next run's predicted distribution over naive baselines, on MLPerf training runs in the order of time.

Split: the runs of one benchmark in the order they began; a run is predicted from those before it and never from later
ones. Two questions: `repeat`, the next run of a submitted configuration that ran before, and `new`, the first run of
one that never did. The runs asked about are spread evenly over the newest half. Time to train is what is predicted:
its variation among repeats is mostly luck of convergence. Loss: pinball of log seconds; the baselines' distributions
are made of their own past errors by the same code. Needs ../shared/data.
"""

import json
import platform
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pandas as pd

from crosswind.data.errors import InvalidInputError
from crosswind.data.prediction import Prediction
from crosswind.models.baseline import BASELINES, one_step_errors
from crosswind.models.baseline import distribution as spread_by
from crosswind.models.predict import NextRun, predict_next
from crosswind.models.scores import coverage, pinball_loss, skill
from crosswind.models.surrogate import LEVELS

RUNS = Path(__file__).resolve().parents[2] / "shared" / "data" / "mlperf" / "runs.parquet"
ASKED = 4  # runs a benchmark and question
HISTORY_MAX = 500
EARLIER_MIN = 4  # a repeat's cohort runs, so that every baseline has past errors
QUESTIONS = ("repeat", "new")


@dataclass(frozen=True)
class Answer:
    """What was said of one run, and how it came out; losses of every method."""

    benchmark: str
    method: str
    seconds: float
    quantiles: tuple[float, ...]
    losses: dict[str, float]


def runs() -> dict[str, pd.DataFrame]:
    """Successful runs of the closed division by benchmark, oldest first, with the columns of a history and a cohort."""
    columns = ["benchmark", "config_id", "gbs", "acc_family", "submitter", "acc_per_node", "n_accelerators"]
    table = pd.read_parquet(RUNS, columns=[*columns, "ttt_min", "run_start_ms", "status", "division"])
    good = (table["status"] == "success") & (table["division"] == "closed")
    table = table[good & (table["ttt_min"] > 0) & (table["n_accelerators"] > 0)].sort_values("run_start_ms")
    described = table[["gbs", "acc_family", "submitter", "acc_per_node"]]
    history = pd.DataFrame(
        {
            "configuration": [{k: v for k, v in row.items() if pd.notna(v)} for row in described.to_dict("records")],
            "world_size": table["n_accelerators"].astype(int).to_numpy(),
            "seconds": table["ttt_min"].to_numpy() * 60,
        }
    )
    return {str(name): rows.reset_index(drop=True) for name, rows in history.groupby(table["benchmark"].to_numpy())}


def cohorts(history: pd.DataFrame) -> list[str]:
    return [
        json.dumps([configuration, size], sort_keys=True)
        for configuration, size in zip(history["configuration"], history["world_size"], strict=True)
    ]


def asked_about(keys: Sequence[str], question: str) -> list[int]:
    """Rows of the newest half that put the question, ASKED of them, evenly spread."""
    earlier: dict[str, int] = {}
    count = []
    for key in keys:
        count.append(earlier.get(key, 0))
        earlier[key] = count[-1] + 1
    fitting = [row for row, seen in enumerate(count) if (seen >= EARLIER_MIN if question == "repeat" else seen == 0)]
    newest = [row for row in fitting if row >= len(keys) // 2]
    return [newest[index] for index in np.linspace(0, len(newest) - 1, min(ASKED, len(newest))).astype(int)]


def answers(benchmark: str, history: pd.DataFrame, question: str) -> Iterator[Answer]:
    keys = cohorts(history)
    for row in asked_about(keys, question):
        start = max(0, row - HISTORY_MAX)
        past, truth = history.iloc[start:row], history.iloc[row]
        comparable = _comparable(past, keys[start:row], keys[row])
        try:
            said = predict_next(past, truth["configuration"], world_size=int(truth["world_size"]))
            yield _answer(benchmark, float(truth["seconds"]), said, comparable)
        except InvalidInputError:
            continue  # it abstains: too few runs came before


def _comparable(past: pd.DataFrame, keys: Sequence[str], wanted: str) -> np.ndarray:
    """The seconds that a naive forecast starts from: the cohort's, or the first runs of all the others."""
    same = np.array([key == wanted for key in keys])
    chosen = same if same.any() else ~pd.Series(keys).duplicated().to_numpy()
    return past["seconds"].to_numpy()[chosen]


def _answer(benchmark: str, seconds: float, said: NextRun, comparable: np.ndarray) -> Answer:
    losses = {"predict": _loss(np.array([said.seconds]), seconds)}
    for baseline in BASELINES:
        naive = spread_by(baseline.forecast(comparable), one_step_errors(baseline, comparable))
        losses[baseline.name] = _loss(naive.values, seconds)
    return Answer(benchmark, said.method, seconds, said.seconds, losses)


def _loss(values: np.ndarray, seconds: float) -> float:
    return pinball_loss(Prediction(LEVELS, np.log(values)), np.log(np.array([seconds])))


def _mean_losses(given: Sequence[Answer]) -> dict[str, float]:
    return {name: float(np.mean([answer.losses[name] for answer in given])) for name in given[0].losses}


def report(question: str, given: Sequence[Answer]) -> dict[str, object]:
    """Prints a line a benchmark and the total; the total's figures."""
    for benchmark in sorted({answer.benchmark for answer in given}):
        mine = [answer for answer in given if answer.benchmark == benchmark]
        losses = _mean_losses(mine)
        methods = ", ".join(sorted({answer.method for answer in mine}))
        line = f"{question:<7} {benchmark:<18}" + "".join(f"{loss:14.4f}" for loss in losses.values())
        print(f"{line}   {'LOSES  ' if losses['predict'] > losses['always_median'] else '       '}{methods}")
    losses = _mean_losses(given)
    print(f"{question:<7} {f'all ({len(given)} runs)':<18}" + "".join(f"{loss:14.4f}" for loss in losses.values()))
    whole = Prediction(LEVELS, np.array([answer.quantiles for answer in given]))
    truth = np.array([answer.seconds for answer in given])
    covered = coverage(whole, truth, low=0.05, high=0.95)
    learned = float(np.mean([answer.method == "surrogate" for answer in given]))
    skills = {f"skill_over_{each.name}": skill(losses["predict"], losses[each.name]) for each in BASELINES}
    figures = {**skills, "coverage_90": covered, "surrogate_ratio": learned, "runs": len(given)}
    return {f"{question}_{name}": round(value, 4) for name, value in figures.items()}


def main() -> None:
    if not RUNS.is_file():
        print(json.dumps({"skipped": f"{RUNS.name} is not beside the repository"}))
        return
    print(f"{'':<26}" + "".join(f"{name:>14}" for name in ("predict", *(each.name for each in BASELINES))))
    histories = runs()
    figures: dict[str, object] = {}
    for question in QUESTIONS:
        given = [each for name, history in histories.items() for each in answers(name, history, question)]
        figures |= report(question, given)
    print(json.dumps(figures | {"machine": f"{platform.machine()}, Python {platform.python_version()}"}))


if __name__ == "__main__":
    main()
