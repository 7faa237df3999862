"""Stores that accuracy is measured on, and figures of answers."""

from pathlib import Path

import pandas as pd
import pytest
from benchmarks.accuracy.asked import Asked, ask, coverage, ran
from benchmarks.accuracy.mlperf_logs import write
from benchmarks.accuracy.store import Files, filled

from crosswind.data.schema.answers.predictions import Outcome
from crosswind.data.schema.question import Question

BEGAN_MS = 1_700_000_000_000
MINUTE_MS = 60_000


def submission(config: str, number: int, minutes: float) -> dict[str, object]:
    began = BEGAN_MS + 1000 * MINUTE_MS * number
    return {
        "config_id": config,
        "benchmark": "bert",
        "submitter_dir": "ada",
        "acc_family": "H100-SXM",
        "status": "success",
        "n_nodes": 1.0,
        "acc_per_node": 8.0,
        "init_start_ms": float("nan"),
        "run_start_ms": float(began),
        "run_stop_ms": began + minutes * MINUTE_MS,
        "hp_submission_benchmark": "bert",
        "hp_global_batch_size": 256.0,
        "hp_train_samples": 2.5e6 + number,
        "hp_opt_base_learning_rate": 4e-4,
        "hp_data_file": f"part_{number}",
        "sys_number_of_nodes": 1.0,
        "sys_accelerator_model_name": "NVIDIA H100-SXM5-80GB",
        "sys_framework": "PyTorch",
    }


@pytest.fixture
def logs(tmp_path: Path) -> list[Files]:
    rows = [submission("a", number, minutes) for number, minutes in enumerate((5.0, 5.02, 5.01))]
    return list(write(pd.DataFrame(rows), tmp_path).values())


def test_logs_make_one_cohort_that_has_no_outcome_in_its_configuration(logs: list[Files]) -> None:
    with filled(logs) as client:
        stored = ran(client, Outcome.RUN)
    assert stored["seconds"].tolist() == pytest.approx([300.0, 301.2, 300.6])
    assert {(row.question.system, row.question.world_size) for row in stored.itertuples()} == {("ada H100-SXM", 8)}
    assert stored["question"][0].configuration == {"global_batch_size": 256, "opt_base_learning_rate": 4e-4}
    assert stored["cohort"].nunique() == 1


def test_an_answer_is_scored_against_every_run_and_a_refusal_is_counted(logs: list[Files]) -> None:
    with filled(logs) as client:
        [question, *_] = ran(client, Outcome.RUN)["question"]
        scores = ask(client, [Asked(question, (300.6, 9000.0)), Asked(Question("unheard", "of"), (1.0,))])
    [scored] = scores.answered
    assert scored.inside == 0.5
    assert scored.ape == pytest.approx(abs(300.6 / 4650.3 - 1), rel=0.01)
    assert len(scores.refused) == 1
    assert scores.figures()["refused"] == 1


def test_coverage_of_few_questions_has_a_wide_interval() -> None:
    few, many = coverage([1.0] * 9 + [0.0]), coverage([1.0] * 900 + [0.0] * 100)
    assert few["coverage_90"] == many["coverage_90"] == pytest.approx(0.9)
    assert few["coverage_90_low"] < 0.6 < 0.87 < many["coverage_90_low"] < 0.9
