"""MLPerf logs. The recorded ones were written for these tests after the documented format.

Source: github.com/mlcommons/logging (mllog/mllog.py, compliance_checker/mlp_parser) and the run.sub scripts of
mlcommons/training_results_v4.1.
"""

import json
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from tests.ingest.trees import RECORDINGS
from tests.needs import needs_data

from crosswind.data.schema.facts import Facts
from crosswind.data.schema.run import Run, RunState
from crosswind.data.schema.steps import PROGRESS
from crosswind.data.store.store import Store
from crosswind.ingest.load.load import Loaded
from crosswind.ingest.load.load_file import load_file
from crosswind.ingest.reader.lines import LINE_LIMIT
from crosswind.ingest.reader.reader import Context, Report
from crosswind.ingest.readers.logs.mllog import MllogReader
from crosswind.ingest.readers.logs.mlperf_facts import described_facts

RECORDED = RECORDINGS / "mllog"
REAL = Path(__file__).parents[5] / "shared" / "data" / "mlperf"
MS = 1_000_000
SECOND = 1_000_000_000
START = 1_700_000_000_000
HERE = Context("test")


def read(path: Path, context: Context = HERE) -> tuple[list[Run], list[Mapping[str, object]], Report]:
    """The runs, the rows of `progress`, the report."""
    report = Report(str(path), "mllog")
    records = list(MllogReader().read(path, report, context))
    rows = [row for record in records if isinstance(record, pa.Table) for row in record.to_pylist()]
    return [record for record in records if isinstance(record, Run)], rows, report


def event(ms: object, key: str, value: object = None, **metadata: object) -> str:
    fields = {"namespace": "", "time_ms": ms, "event_type": "POINT_IN_TIME", "key": key, "value": value}
    return f":::MLLOG {json.dumps({**fields, 'metadata': metadata})}\n"


def lasted(run: Run) -> int | None:
    """Milliseconds."""
    return None if run.ended_ns is None or run.started_ns is None else (run.ended_ns - run.started_ns) // MS


def trained(start: int = START, **stopped: object) -> str:
    return "".join(
        (
            event(start, "init_start"),
            event(start, "submission_benchmark", "bert"),
            event(start + 1000, "init_stop"),
            event(start + 1000, "run_start"),
            event(start + 1000, "block_start", first_epoch_num=1),
            event(start + 61_000, "eval_accuracy", 0.72, samples_count=1000),
            event(start + 61_000, "run_stop", **(stopped or {"status": "success"})),
        )
    )


@pytest.fixture
def log(tmp_path: Path) -> Path:
    return tmp_path / "slurm-1.out"


def test_a_log_becomes_its_run() -> None:
    [run], _, report = read(RECORDED / "result_0.txt")
    assert run == Run(
        run_id="mllog-4cda7b39891a3d525cc2afc7",
        workload="bert",
        system="test",
        state=RunState.COMPLETED,
        world_size=8,
        configuration={
            "global_batch_size": 768,
            "opt_name": "lamb",
            "opt_betas": "[0.9,0.999]",
            "opt_base_learning_rate": 0.002,
        },
        job_id="4711",
        nodes=("n07", "n08"),
        started_ns=(START + 30_001) * MS,
        ended_ns=(START + 332_101) * MS,
        software={"framework": "PyTorch 2.4"},
        tags={
            "submitter": "Weather",
            "division": "closed",
            "submission_status": "onprem",
            "platform": "2xstorm",
            "seed": "1234",
            "status": "success",
            "init_seconds": "30",
            "progress_unit": "samples_count",
            "progress": "450000",
        },
        facts=Facts(
            accelerator="NVIDIA H100 80GB HBM3",
            accelerators=8,
            accelerators_per_node=4,
            node_count=2,
            framework="PyTorch",
            framework_version="2.4",
        ),
    )
    assert (report.read, report.skipped) == (15, 0)
    assert report.notes == [
        "1 events with a person's name or address, which are not kept",
        "1 run_start repeated by another process: the first counts",
        "1 run_stop repeated by another process: the first counts",
    ]


def test_what_is_logged_on_the_way_becomes_rows_where_the_event_says_it_was() -> None:
    [run], rows, _ = read(RECORDED / "result_0.txt")
    assert {(row["run_id"], row["rank"]) for row in rows} == {(run.run_id, 0)}
    assert [(row["ts_ns"] // MS - START, row["step"], row["name"], row["value"]) for row in rows[:4] + rows[-2:]] == [
        (130_003, 150_000, "throughput", 7400.5),
        (130_003, 150_000, "loss", 5.25),
        (132_003, 150_000, "eval_accuracy", 0.31),
        (132_003, 150_000, "eval_seconds", 2.0),
        (332_100, 1, "block_seconds", 302.097),
        (332_101, 0, "train_samples", 450_000.0),
    ]


def test_instances_trained_side_by_side_become_runs_of_their_own() -> None:
    runs, rows, _ = read(RECORDED / "two-instances.txt")
    assert [(run.tags["instance"], run.tags["seed"], run.state, run.world_size) for run in runs] == [
        ("0", "90", RunState.COMPLETED, 128),
        ("1", "91", RunState.FAILED, 128),
    ]
    errors = [(row["run_id"], row["step"], row["value"]) for row in rows if row["name"] == "eval_error"]
    first, second = (run.run_id for run in runs)
    assert errors == [(first, 1, 0.2), (second, 1, 0.19), (first, 2, 0.1), (second, 2, 0.09000000000000001)]
    assert [row["value"] for row in rows if row["name"] == "staging_seconds"] == [60.0, 60.0]


def test_logs_of_version_0_6_are_read() -> None:
    [run], rows, _ = read(RECORDED / "v0.6.txt")
    assert (run.workload, run.state, lasted(run)) == ("minigo", RunState.COMPLETED, 124_500)
    assert run.configuration == {"opt_name": "sgd"}
    assert [(row["step"], row["name"], row["value"]) for row in rows] == [
        (1, "epoch_seconds", 60.0),
        (1, "eval_accuracy", 0.42),
        (2, "epoch_seconds", 60.0),
        (2, "eval_accuracy", 0.5),
    ]


def test_logs_of_version_0_5_are_read() -> None:
    [run], rows, _ = read(RECORDED / "v0.5.txt")
    assert (run.workload, run.state, run.started_ns) == ("ncf", RunState.COMPLETED, 1_540_000_000 * SECOND + 1)
    assert run.configuration == {"opt_name": "adam", "input_batch_size": 98304}
    assert (run.tags["seed"], run.tags["progress"], run.tags["progress_unit"]) == ("1", "1", "epoch")
    assert ("eval_accuracy", 1, 0.636) in [(row["name"], row["step"], row["value"]) for row in rows]


@pytest.mark.parametrize(
    ("stopped", "state"),
    [
        ({"status": "success"}, RunState.COMPLETED),
        ({"status": "aborted"}, RunState.FAILED),
        ({"duration": 60}, RunState.LOST),
    ],
)
def test_a_run_ended_as_run_stop_says(log: Path, stopped: dict[str, object], state: RunState) -> None:
    log.write_text(trained(**stopped))
    [run], _, _ = read(log)
    assert (run.state, lasted(run)) == (state, 60_000)


def test_a_run_without_run_stop_is_lost_until_the_log_has_it(log: Path) -> None:
    log.write_text("".join(trained().splitlines(keepends=True)[:-1]))
    [run], _, report = read(log)
    assert (run.state, run.ended_ns) == (RunState.LOST, None)
    assert "1 runs without run_stop: cut short, or still being written" in report.notes
    log.write_text(trained())
    assert read(log)[0][0].run_id == run.run_id


def test_runs_one_after_the_other_in_one_log_are_runs_of_their_own(log: Path) -> None:
    log.write_text(event(START, "global_batch_size", 64) + trained() + trained(START + 100_000, status="aborted"))
    runs, rows, _ = read(log)
    assert [(run.state, run.configuration) for run in runs] == [
        (RunState.COMPLETED, {"global_batch_size": 64}),
        (RunState.FAILED, {"global_batch_size": 64}),
    ]
    assert [row["run_id"] for row in rows if row["name"] == "eval_accuracy"] == [run.run_id for run in runs]


def test_a_run_begun_again_after_it_died_is_another_run(log: Path) -> None:
    log.write_text("".join(trained().splitlines(keepends=True)[:-1]) + trained(START + 200_000))
    assert [(run.state, lasted(run)) for run in read(log)[0]] == [(RunState.LOST, None), (RunState.COMPLETED, 60_000)]


def test_a_launchers_labels_name_the_rank(log: Path) -> None:
    accuracy = [event(START + 5000 + n, "eval_accuracy", 0.5, epoch_num=1) for n in range(4)]
    labels = ("", "7: ", "[3] ", "[1,12]<stdout>:")
    log.write_text(trained() + "".join(map(str.__add__, labels, accuracy)))
    _, rows, _ = read(log)
    assert [row["rank"] for row in rows[1:]] == [0, 7, 3, 12]


def test_progress_that_never_moves_is_no_progress(log: Path) -> None:
    again = [event(START + 2000 * n, "eval_accuracy", 0.1 * n, epoch_num=1) for n in (1, 2, 3)]
    log.write_text(trained().replace("samples_count", "epoch_num").replace("1000}", "1}") + "".join(again))
    [run], rows, report = read(log)
    assert "progress" not in run.tags
    assert len(rows) == 4
    assert "1 runs without progress at the last evaluation" in report.notes


def test_a_diverged_loss_is_a_row_without_a_value(log: Path) -> None:
    log.write_text(trained() + event(START + 61_000, "train_loss", float("nan"), epoch_num=3))
    _, rows, _ = read(log)
    assert (rows[-1]["name"], rows[-1]["step"], rows[-1]["value"]) == ("train_loss", 3, None)


def test_the_description_next_to_a_tree_of_results_has_the_size(tmp_path: Path) -> None:
    folder = tmp_path / "results" / "storm_n2" / "strong" / "bert"
    folder.mkdir(parents=True)
    (tmp_path / "systems").mkdir()
    log, described = folder / "result_1.txt", tmp_path / "systems" / "storm_n2.json"
    log.write_text(trained())
    assert read(log)[0][0].world_size is None
    described.write_text('{"number_of_nodes": "2", "accelerators_per_node": 8, "framework": "MXNet"}')
    [run], _, _ = read(log)
    assert (run.world_size, run.facts.node_count, run.software) == (16, 2, {"framework": "MXNet"})
    log.write_text(event(START, "number_of_nodes", 1) + trained())
    assert read(log)[0][0].world_size == 8
    described.write_text("{")
    [run], _, report = read(log)
    assert run.world_size is None
    assert report.notes[0].startswith(f"{described}: Expecting property name")


@pytest.mark.parametrize(
    ("line", "reason"),
    [
        (':::MLLOG {"namespace": "", "time_ms": 17\n', "no event: Expecting"),
        (":::MLLOG [1]\n", "expected a JSON object, found '[1]'"),
        (":::MLLOG " + "[" * 100_000 + "\n", "no event: maximum recursion depth"),
        (':::MLLOG {"key": "x", "time_ms": ' + "9" * 5000 + "}\n", "no event: Exceeds the limit"),
        (':::MLLOG {"key": 3}\n', "expected a key and metadata as an object"),
        (':::MLLOG {"key": "x", "metadata": [1]}\n', "expected a key and metadata as an object"),
        (':::MLLOG {"key": "opt name\\n"}\n', "key 'opt name\\n' is no name"),
        (':::MLLOG {"key": "seed", "value": "\\ud800"}\n', "no event: 'utf-8' codec can't encode"),
        (':::MLLOG {"key": "seed", "value": "\\u0000"}\n', "holds a zero byte, which no text does"),
        (event(0, "run_start"), "run_start has no time in ms since 1970 between 2001 and 2262"),
        (event(START * 1000, "run_stop"), "run_stop has no time in ms since 1970 between 2001 and 2262"),
        (event(True, "run_stop"), "run_stop has no time in ms since 1970 between 2001 and 2262"),
        (event("1700000000000", "eval_accuracy", 0.5), "eval_accuracy has no time in ms since 1970 between"),
        (event(START, "(DLPAL)", 1), "key '(DLPAL)' is no name"),
        (event(START, "number_of_nodes", "2,5"), "number_of_nodes '2,5' is no count"),
        (event(START, "notes", "x" * 2000), "a parameter of 2000 characters; expected at most 1000"),
        (":::MLL 1,5 run_start: {}\n", "no event of any known version"),
        (":::MLPv0.5.0 Starting prediction timing.\n", "no event of any known version"),
        (":::DLPAL /image 12 3 n[1-2] storm\n", "3 nodes, but the list 'n[1-2]' has 2"),
        (":::DLPAL /image 12 1 ../etc storm\n", "cannot be part of a host name"),
        (":::MLLOG " + "x" * 10_000_000 + "\n", f"longer than {LINE_LIMIT} bytes"),
        (':::MLLOG {"key": "\xff"}\n', "not UTF-8: invalid start byte"),
    ],
)
def test_a_line_that_is_no_event_is_quoted_and_the_rest_kept(log: Path, line: str, reason: str) -> None:
    whole = trained().splitlines(keepends=True)
    log.write_bytes("".join([*whole[:4], line, *whole[4:]]).encode("latin-1"))
    [run], rows, report = read(log)
    assert (lasted(run), len(rows), report.skipped) == (60_000, 1, 1)
    assert report.quoted[0].line == 5
    assert reason in report.quoted[0].reason


def test_a_run_that_ends_before_it_starts_has_no_end(log: Path) -> None:
    log.write_text(trained().replace(str(START + 61_000), str(START)))
    [run], _, report = read(log)
    assert (run.state, run.ended_ns) == (RunState.LOST, None)
    assert (report.quoted[0].line, report.quoted[0].reason) == (7, "run_stop is before run_start")


def test_two_processes_on_one_line_are_both_read(log: Path) -> None:
    cut = event(START, "seed", 5)[:40]
    log.write_text(cut + trained().replace("\n", " 0: step 5\n").replace("\n", "", 1))
    [run], _, report = read(log)
    assert (run.workload, lasted(run)) == ("bert", 60_000)
    assert [skipped.line for skipped in report.quoted] == [1]


def test_whatever_else_the_job_wrote_is_no_event(log: Path) -> None:
    noise = "grep ':::MLLOG' result.txt\n::: :::MLL\n+ echo ':::DLPAL /image 12 9 n1 storm'\n" + "#" * 5000 + "\r\n"
    log.write_text(noise.join(trained().splitlines(keepends=True)))
    [run], _, report = read(log)
    assert (lasted(run), run.job_id, report.skipped) == (60_000, None, 0)


def test_a_log_without_a_run_says_so(log: Path) -> None:
    log.write_text("epoch 1 loss 0.5\n")
    assert read(log) == ([], [], Report(str(log), "mllog", notes=["no run_start: nothing to store"]))


def test_a_benchmark_that_the_log_does_not_name_is_named_by_who_ingests_it(log: Path) -> None:
    log.write_text("".join(line for line in trained().splitlines(keepends=True) if "submission" not in line))
    [run], _, report = read(log)
    assert run.workload == ""
    assert "1 runs without a benchmark: name it by --workload" in report.notes
    assert read(log, Context("test", workload="bert"))[0] == [replace(run, workload="bert")]


def test_more_instances_or_parameters_than_memory_should_hold_are_refused(log: Path) -> None:
    instances = (event(START, "x", 1, instance_id=number) for number in range(2_500))
    parameters = (event(START, f"opt_{number}", 1) for number in range(600))
    log.write_text("".join((*instances, *parameters, trained())))
    [run], _, report = read(log)
    assert (len(run.configuration), report.skipped) == (500, 600)
    assert {skipped.reason for skipped in report.quoted} == {"more than 2000 instances"}


def test_a_log_that_grew_gives_the_same_rows_and_then_more(log: Path) -> None:
    lines = (RECORDED / "two-instances.txt").read_bytes().splitlines(keepends=True)
    rows: list[Mapping[str, object]] = []
    for count in range(1, len(lines) + 1):
        log.write_bytes(b"".join(lines[:count]))
        before, rows = rows, read(log)[1]
        assert rows[: len(before)] == before
    assert len(rows) == 14


def test_a_log_ingested_while_it_is_written_ends_as_if_it_was_ingested_once(tmp_path: Path, log: Path) -> None:
    content = (RECORDED / "result_0.txt").read_bytes()
    with Store.open(tmp_path / "store") as store:
        for end in (len(content) // 2, len(content), len(content)):
            log.write_bytes(content[:end])
            load_file(store, log, MllogReader(), Loaded(), context=Context("test"))
        with store.catalog.read() as session:
            [stored] = session.runs.find(limit=9)
        frame = store.lake.frame("select * from progress order by ts_ns, name")
    [run], rows, _ = read(log)
    assert stored == run
    keys = [column.name for column in PROGRESS.columns]
    assert sorted(map(str, frame[keys].to_dict("records"))) == sorted(
        str({key: row[key] for key in keys}) for row in rows
    )


@needs_data(REAL)
def test_real_logs_tell_what_was_found_in_them_before() -> None:
    table = pq.read_table(REAL / "runs.parquet", columns=["round", "path", "ttt_min", "status", "last_eval_progress"])
    expected = {f"{row['round']}__{row['path'].replace('/', '__')}.gz": row for row in table.to_pylist()}
    unmoved = []
    for path in sorted((REAL / "logs").iterdir()):
        [run], _, report = read(path)
        row = expected[path.name]
        assert report.skipped == 0
        assert run.seconds == pytest.approx(row["ttt_min"] * 60, abs=5e-4)
        assert run.tags["status"] == row["status"]
        if "progress" in run.tags:
            assert float(run.tags["progress"]) == row["last_eval_progress"]
        else:
            unmoved.append(path.name)
    assert [name[:36] for name in unmoved] == ["training_results_v1.0__Supermicro__re"[:36]]


def test_a_systems_description_becomes_facts_of_its_runs(tmp_path: Path) -> None:
    folder = tmp_path / "results" / "storm_n2" / "bert"
    folder.mkdir(parents=True)
    (tmp_path / "systems").mkdir()
    (folder / "result_1.txt").write_text(trained())
    description = {
        "number_of_nodes": "2",
        "accelerators_per_node": "8",
        "accelerator_model_name": "NVIDIA H100-SXM5-80GB (700W)",
        "accelerator_memory_capacity": "80 GB",
        "accelerator_interconnect": "18x 25GB/s NVLink",
        "host_networking": "8x NDR InfiniBand\n400Gb/s",
        "host_processor_model_name": "Intel(R) Xeon(R) Platinum 8480C",
        "host_processors_per_node": 2,
        "framework": "PyTorch NVIDIA Release 24.04",
        "other_software_stack": {"cuda_version": "12.4.1", "cuda_driver_version": "550.54.15", "nccl": "2.21.5"},
    }
    (tmp_path / "systems" / "storm_n2.json").write_text(json.dumps(description))
    [run], _, _ = read(folder / "result_1.txt")
    assert run.facts == Facts(
        accelerator="NVIDIA H100-SXM5-80GB (700W)",
        accelerators=16,
        accelerators_per_node=8,
        accelerator_memory_bytes=80e9,
        node_count=2,
        processor="Intel(R) Xeon(R) Platinum 8480C",
        processors_per_node=2,
        device_link="18x 25GB/s NVLink",
        interconnect="8x NDR InfiniBand 400Gb/s",
        framework="PyTorch",
        framework_version="24.04",
        cuda="12.4.1",
        nccl="2.21.5",
        driver="550.54.15",
    )


@pytest.mark.parametrize(
    ("stack", "cuda", "nccl", "rocm", "driver"),
    [
        ({"CUDA": "10.1.168", "NCCL": "2.6.4", "CUDA Driver": "440.33.01"}, "10.1.168", "2.6.4", None, "440.33.01"),
        ("cuda 10.2.89, cudnn, 7.6.5, nccl 2.6.4-1, gcc 7.4.0", "10.2.89", "2.6.4", None, None),
        ("gcc/9.1.0 cuda/10.0 cudnn/7.6.2 nccl/2.4.7", "10.0", "2.4.7", None, None),
        ({"ROCm": "6.1.2", "RCCL": "2.18.6"}, None, "2.18.6", "6.1.2", None),
        (["cuda", 12], None, None, None, None),
    ],
)
def test_versions_are_taken_from_the_software_stack_as_submitters_write_it(
    stack: object, cuda: str | None, nccl: str | None, rocm: str | None, driver: str | None
) -> None:
    facts = described_facts({"other_software_stack": stack})
    assert (facts.cuda, facts.nccl, facts.rocm, facts.driver) == (cuda, nccl, rocm, driver)


@pytest.mark.parametrize(
    ("description", "facts"),
    [
        ({"accelerator_model_name": "N/A", "accelerators_per_node": 0}, {"accelerators_per_node": 0}),
        ({"accelerators_per_node": "-8", "number_of_nodes": 0, "accelerator_memory_capacity": "80"}, {}),
        ({"accelerators_per_node": 99_999_999, "number_of_nodes": True, "host_processors_per_node": []}, {}),
        ({"accelerator_memory_capacity": "32 GiB HBM2"}, {"accelerator_memory_bytes": 32 * 2.0**30}),
        ({"framework": "Mesh 3"}, {"framework": "Mesh 3", "framework_version": "3"}),
    ],
)
def test_what_a_description_does_not_say_is_missing(description: dict[str, object], facts: dict[str, object]) -> None:
    assert described_facts(description).given == facts


def test_a_platform_that_names_a_device_names_the_accelerator(log: Path) -> None:
    log.write_text(event(START, "submission_platform", "8xXE9680x8H100-SXM-80GB") + trained())
    assert read(log)[0][0].facts == Facts(accelerator="8xXE9680x8H100-SXM-80GB")
    log.write_text(event(START, "submission_platform", "storm_n2") + trained())
    assert read(log)[0][0].facts == Facts()
