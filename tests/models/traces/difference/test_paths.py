"""Paths of operators, and the names by which those of two runs are the same."""

from tests.models.traces.made_traces import OTHER_THREAD, STREAM, THREAD, Row, made

from crosswind.data.traces.trace import Kind, RankTrace
from crosswind.models.traces.difference.paths import Paths, paths_of, shared_names
from crosswind.models.traces.difference.windows import windows


def ranges(*names: str) -> list[RankTrace]:
    return [made([(Kind.ANNOTATION, name, THREAD, place, 1) for place, name in enumerate(names)])]


def test_numbers_that_differ_between_runs_are_left_out_of_names() -> None:
    names = shared_names(ranges("iteration 7", "layer 1", "layer 2"), ranges("iteration 9", "layer 1", "layer 2"))
    assert names == {
        "iteration 7": "iteration #",
        "iteration 9": "iteration #",
        "layer 1": "layer 1",
        "layer 2": "layer 2",
    }
    assert set(shared_names(ranges("f at 0x7f1a"), ranges("f at 0x7f2b")).values()) == {"f at #"}


def test_registered_operators_keep_their_names() -> None:
    assert shared_names(ranges("aten::conv2d"), ranges("aten::conv3d")) == {
        "aten::conv2d": "aten::conv2d",
        "aten::conv3d": "aten::conv3d",
    }


def test_work_has_the_path_of_its_launch_or_of_the_operator_that_it_states() -> None:
    rows: list[Row] = [
        (Kind.STEP, "ProfilerStep#1", THREAD, 0, 100),
        (Kind.ANNOTATION, "forward", THREAD, 1, 50),
        (Kind.OPERATOR, "aten::mm", THREAD, 2, 20),
        (Kind.FRAME, "train.py(3): main", THREAD, 3, 18),
        (Kind.CALL, "cudaLaunchKernel", THREAD, 4, 5),
        (Kind.OPERATOR, "aten::add", OTHER_THREAD, 5, 5),
        (Kind.KERNEL, "gemm", STREAM, 30, 10),
        (Kind.KERNEL, "add", STREAM, 40, 10),
        (Kind.KERNEL, "lone", STREAM, 50, 10),
    ]
    trace = made(rows, correlation=[-1, -1, -1, -1, 7, -1, 7, -1, -1], operator=[-1, -1, -1, -1, -1, 3, -1, 3, -1])
    paths = Paths()
    path = paths_of(trace, paths, shared_names([trace]))
    of = {trace.names[name]: paths.names(code) for name, code in zip(trace.events.name, path.tolist(), strict=True)}
    assert of["gemm"] == of["aten::mm"] == ("forward", "aten::mm")
    assert of["add"] == ("aten::add",)
    assert of["lone"] == ()


def test_windows_begin_with_the_first_work_that_a_step_launched() -> None:
    rows: list[Row] = [(Kind.STEP, f"s{step}", THREAD, 100 * step, 100) for step in range(3)]
    rows += [(Kind.CALL, "launch", THREAD, 100 * step + 10, 5) for step in range(3)]
    rows += [(Kind.KERNEL, "k", STREAM, 200 * step + 50, 150) for step in range(3)]
    numbers = [-1.0, -1, -1, 1, 2, 3, 1, 2, 3]
    of = windows(made(rows, correlation=numbers))
    assert of.edges.tolist() == [50, 250, 450]  # the last step, to 600, is left out
    assert of.notes == ("the last step is left out: recording ends before the next one begins",)
    one = windows(made([rows[0], rows[3], rows[6]], correlation=[-1, 1, 1]))
    assert one.edges.tolist() == [50, 200]
