"""Megatron-LM's logs. Lines of iterations are quoted from NVIDIA/Megatron-LM#756 (mixtral), epfLLM/Megatron-LLM#11
(llama2) and deepspeedai/DeepSpeed#3742 (neox); arguments and datetimes are in the form of megatron/training/
arguments.py, _print_args, and training.py, print_datetime.
"""

import os
import time
from pathlib import Path
from zoneinfo import ZoneInfo

from tests.ingest.readers.logs.logged import CHANGED, HERE, SECOND, read_log, read_text
from tests.ingest.trees import RECORDINGS

from crosswind.data.schema.run import RunState
from crosswind.data.store.store import Store
from crosswind.ingest.load.load import Loaded
from crosswind.ingest.load.load_file import load_file
from crosswind.ingest.reader.reader import Context
from crosswind.ingest.readers.logs.megatron import MegatronReader

RECORDED = RECORDINGS / "megatron"
READER = MegatronReader()
NEW = 1_712_372_376 * SECOND  # 2024-04-06 02:59:36 UTC
MS = 1_000_000


def iteration(number: int, ms: float = 1000.0, total: int = 100, rest: str = "") -> str:
    return f" iteration {number:8d}/{total:8d} | elapsed time per iteration (ms): {ms:.1f} |{rest}\n"


def test_new_lines_have_their_own_time_and_a_step_ends_when_its_line_is_written() -> None:
    log = read_log(READER, RECORDED / "mixtral.txt")
    assert log.steps() == [
        (NEW - 5_444_900_000, 42, 5_444_900_000),
        (NEW + 5 * SECOND - 5_533_800_000, 43, 5_533_800_000),
        (NEW + 11 * SECOND - 5_718_600_000, 44, 5_718_600_000),
    ]
    assert log.values(42) == {
        "consumed_samples": 5504,
        "tflops_per_gpu": 239.8,
        "learning_rate": 8.6e-06,
        "global_batch_size": 128,
        "loss": 1.825991,
        "load_balancing_loss": 1.019746,
        "loss_scale": 1.0,
        "grad_norm": 1.426,
        "num_zeros": 0.0,
        "number_of_skipped_iterations": 0,
        "number_of_nan_iterations": 0,
    }
    assert (log.report.read, log.report.skipped) == (37, 0)


def test_arguments_are_the_configuration_and_what_is_not_set_is_left_out() -> None:
    [run] = read_log(READER, RECORDED / "mixtral.txt").runs
    assert run.world_size == 16
    assert run.configuration == {
        "accumulate_allreduce_grads_in_fp32": True,
        "adam_beta1": 0.9,
        "adam_eps": 1e-08,
        "bias_gelu_fusion": False,
        "global_batch_size": 128,
        "log_throughput": True,
        "tensor_model_parallel_size": 4,
        "world_size": 16,
    }
    assert (run.state, run.started_ns, run.ended_ns) == (RunState.LOST, NEW - 274 * SECOND, NEW + 11 * SECOND)


def test_old_lines_end_when_the_file_was_last_changed_and_the_run_says_so(tmp_path: Path) -> None:
    log = read_text(READER, tmp_path, (RECORDED / "llama2.txt").read_text())
    [run] = log.runs
    durations = [86_545_200_000, 87_871_600_000, 89_474_800_000]
    assert log.steps() == [
        (CHANGED - sum(durations), 121, durations[0]),
        (CHANGED - sum(durations[1:]), 122, durations[1]),
        (CHANGED - durations[2], 123, durations[2]),
    ]
    assert log.values(123)["loss"] == 2.559583
    assert run.tags["time_from"] == "durations of the log, added up back from the file's modification time"
    assert f"time_from: {run.tags['time_from']}" in log.report.notes


def test_a_unit_of_a_value_is_part_of_its_name() -> None:
    assert read_log(READER, RECORDED / "neox.txt").values(33) == {
        "samples_per_second": 7.799,
        "learning_rate": 2.111e-06,
        "approx_flops_per_gpu_tflops": 112.9,
        "loss": 11.18665,
        "number_of_skipped_iterations": 0,
        "number_of_nan_iterations": 0,
    }


def test_old_lines_follow_the_last_moment_that_is_named(tmp_path: Path) -> None:
    text = "[before the start of training step] datetime: 2024-04-06 02:59:36 \n" + iteration(1) + iteration(2, 500)
    log = read_text(READER, tmp_path, text + "[after training is done] datetime: 2024-04-06 02:59:40 \n")
    assert log.steps() == [(NEW, 0, SECOND), (NEW + SECOND, 1, 500 * MS)]
    [run] = log.runs
    assert (run.state, run.started_ns, run.ended_ns) == (RunState.COMPLETED, NEW, NEW + 4 * SECOND)
    assert run.tags["time_from"] == "durations of the log, added up from the last time in it"


def test_times_are_of_the_zone_that_was_given(tmp_path: Path) -> None:
    text = f" [2024-04-06 04:59:36]{iteration(1)}"
    log = read_text(READER, tmp_path, text, context=Context("test", ZoneInfo("Europe/Berlin")))
    assert log.steps() == [(NEW - SECOND, 0, SECOND)]
    assert log.report.notes == ["time_zone: 1 times have no zone and were read as Europe/Berlin"]


def test_a_line_of_several_iterations_has_their_mean_and_the_last_ones_number(tmp_path: Path) -> None:
    log = read_text(READER, tmp_path, iteration(10) + iteration(20, 2000))
    assert [(step, duration) for _, step, duration in log.steps()] == [(9, SECOND), (19, 2 * SECOND)]
    assert log.runs[0].tags["steps_from"] == "lines of up to 10 steps: each row has their mean duration"
    assert log.runs[0].ended_ns == CHANGED
    assert log.runs[0].started_ns == CHANGED - 21 * SECOND  # of the first line, one step is sure


def test_a_restart_in_the_same_file_is_a_run_of_its_own(tmp_path: Path) -> None:
    log = read_text(READER, tmp_path, iteration(3) + iteration(4) + iteration(4, 900) + iteration(3) + iteration(100))
    assert [run.state for run in log.runs] == [RunState.LOST, RunState.COMPLETED]
    assert log.runs[0].run_id != log.runs[1].run_id
    by_run = [(row["run_id"], row["step"]) for row in log.rows["step"]]
    first, second = (run.run_id for run in log.runs)
    assert by_run == [(first, 2), (first, 3), (second, 2), (second, 99)]
    assert [(skipped.line, skipped.reason) for skipped in log.report.quoted] == [(3, "step 3 is repeated")]


def test_arguments_that_are_printed_again_begin_another_run(tmp_path: Path) -> None:
    banner = "-" * 24 + " arguments " + "-" * 24
    end = "-" * 20 + " end of arguments " + "-" * 21
    text = "".join(f"{banner}\n  seed .... {seed}\n{end}\n{iteration(seed)}" for seed in (5, 6))
    assert [run.configuration for run in read_text(READER, tmp_path, text).runs] == [{"seed": 5}, {"seed": 6}]


def test_what_is_no_iteration_after_all_is_skipped_with_its_reason(tmp_path: Path) -> None:
    text = (
        iteration(1)
        + " iteration        2/     100 | consumed samples: 2 |\n"
        + iteration(101)
        + " [2024-13-06 02:59:36]"
        + iteration(2)
        + " [2099-01-01 00:00:00]"
        + iteration(2)
        + iteration(2, 99e12)
    )
    log = read_text(READER, tmp_path, text)
    assert [step for _, step, _ in log.steps()] == [0]
    assert [(skipped.line, skipped.reason) for skipped in log.report.quoted] == [
        (2, "an iteration without a time of less than thirty years"),
        (3, "iteration 101 of 100"),
        (4, "time '2024-13-06T02:59:36' is no time; expected seconds since 1970 (SLURM_TIME_FORMAT=%s) or "
        "YYYY-MM-DDTHH:MM:SS"),
        (5, "its time is later than the file was changed; expected one before"),
        (6, "an iteration without a time of less than thirty years"),
    ]  # fmt: skip


def test_values_that_are_no_finite_numbers_are_null(tmp_path: Path) -> None:
    log = read_text(READER, tmp_path, iteration(1, rest=" lm loss: nan | grad norm: inf | learning rate: 1.000E-04 |"))
    assert log.values(0) == {"loss": None, "grad_norm": None, "learning_rate": 1e-4}


def test_a_validation_is_of_the_newest_step(tmp_path: Path) -> None:
    text = iteration(10) + " validation loss at iteration 10 | lm loss value: 7.084E+00 | lm loss PPL: 1.192E+03 | \n"
    values = read_text(READER, tmp_path, text).values(9)
    assert values == {"validation_loss": 7.084, "validation_perplexity": 1192.0}


def test_a_log_that_grew_gives_the_same_and_more(tmp_path: Path) -> None:
    begun = "[before the start of training step] datetime: 2024-04-06 02:59:36 \n" + iteration(1)
    before = read_text(READER, tmp_path, begun)
    after = read_text(READER, tmp_path, begun + iteration(2))
    assert after.rows["step"][:1] == before.rows["step"]
    assert after.runs[0].run_id == before.runs[0].run_id


def test_a_log_that_grew_is_in_the_store_once(tmp_path: Path) -> None:
    path = tmp_path / "train.log"
    with Store.open(tmp_path / "store") as store:
        for text in (iteration(1), iteration(1) + iteration(2), iteration(1) + iteration(2)):
            path.write_text("[before the start of training step] datetime: 2024-04-06 02:59:36 \n" + text)
            load_file(store, path, READER, Loaded(), context=HERE)
        with store.catalog.read() as session:
            [run] = session.runs.find(limit=9)
        steps = store.lake.frame("select ts_ns, step, duration_seconds from step order by step")
    assert steps.values.tolist() == [[NEW, 0, 1.0], [NEW + SECOND, 1, 1.0]]
    assert run.ended_ns == NEW + 2 * SECOND


def test_a_line_made_to_take_long_does_not(tmp_path: Path) -> None:
    text = 50_000 * " iteration 1/ 2 |" + "\n" + iteration(1) + f" iteration 2/ 100 |{' ' * 500_000}x|\n"
    begun = time.process_time()
    log = read_text(READER, tmp_path, text)
    assert time.process_time() - begun < 5  # some 0.1 s; with patterns over all of it minutes
    assert [step for _, step, _ in log.steps()] == [0]
    assert [skipped.line for skipped in log.report.quoted] == [1, 3]


def test_another_programs_arguments_are_not_recognised(tmp_path: Path) -> None:
    text = "------------------------ arguments ------------------------\n  batch_size ......... 1\n"
    assert not READER.recognises(tmp_path / "log", text.encode())
    assert READER.recognises(tmp_path / "log", (text + "  tensor_model_parallel_size .... 4\n").encode())


def test_a_log_that_is_timed_by_its_file_grows_without_doubling(tmp_path: Path) -> None:
    content, path = (RECORDED / "neox.txt").read_bytes(), tmp_path / "neox.txt"
    with Store.open(tmp_path / "store") as store:
        for quarter in (1, 2, 3, 4):
            path.write_bytes(content[: len(content) * quarter // 4])
            os.utime(path, (1_760_000_000 + quarter, 1_760_000_000 + quarter))
            load_file(store, path, MegatronReader(), Loaded(), context=Context("lab"))
        rows = store.lake.frame("select step, name, count(*) as times from progress group by all")
    assert len(rows) == 6
    assert set(rows["times"]) == {1}
