"""A difference sums to the nanosecond, goes to the operator and rank that made it, and covers 0 where there is none."""

import csv
import time
from functools import lru_cache

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.models.traces.made_traces import KINETO, OTHER_STREAM, STREAM, THREAD, Row, made
from tests.needs import needs_data

from crosswind.data.schema.answers.trace_difference import DifferencePart, PartKind, RunsDifference
from crosswind.data.schema.errors import InvalidInputError
from crosswind.data.traces.trace import Group, Kind, RankTrace
from crosswind.ingest.readers.traces.files import read_traces
from crosswind.models.traces.difference.difference import difference, difference_of_steps
from crosswind.models.traces.difference.paths import Paths, shared_names
from crosswind.models.traces.difference.step_parts import StepParts, step_parts

TRACES = KINETO.parent
PAIRS = TRACES / "pairs"
MODELS = ("Falconsai_nsfw_image_detection__1016002", "gaunernst_bert-small-uncased__1016001")
GROUP = (Group("world", (0, 1), 2),)
MS = 1_000_000


@lru_cache
def read(*names: str) -> list[RankTrace]:
    return read_traces([TRACES / name for name in names])


def gloo(name: str) -> list[RankTrace]:
    return read(*(f"kineto/gloo2/rank{rank}_{name}.json.gz" for rank in range(2)))


def adds_up(answer: RunsDifference) -> None:
    for parts in (answer.parts, answer.kinds):
        total = sum(part.seconds.value for part in parts) + answer.unexplained.value
        assert total == pytest.approx(answer.seconds.value, abs=1e-9)
    change = answer.second.step_seconds - answer.first.step_seconds
    assert answer.seconds.value == pytest.approx(change, abs=1e-9)


def parts_of(traces: list[RankTrace]) -> tuple[StepParts, Paths]:
    paths = Paths()
    return step_parts(traces, paths, shared_names(traces, traces)), paths


def only(answer: RunsDifference, *kinds: PartKind) -> list[DifferencePart]:
    return [part for part in answer.parts if part.kind in kinds and abs(part.seconds.value) > 1e-12]


def trained(
    compute: list[int], *, operator: str = "aten::addmm", kernel: str = "gemm", late: int = 0, rank: int = 0
) -> RankTrace:
    """Return steps of 1 ms: an operator launches a kernel of so many ns, then an all-reduce of 200 us - late."""
    rows: list[Row] = []
    correlations: list[float] = []
    for step, ns in enumerate(compute):
        begin = step * MS
        rows += [
            (Kind.STEP, f"ProfilerStep#{step}", THREAD, begin, MS),
            (Kind.OPERATOR, "aten::linear", THREAD, begin + 1000, 60_000),
            (Kind.OPERATOR, operator, THREAD, begin + 2000, 50_000),
            (Kind.CALL, "cudaLaunchKernel", THREAD, begin + 3000, 5000),
            (Kind.KERNEL, kernel, STREAM, begin + 20_000, ns),
            (Kind.OPERATOR, "c10d::allreduce_", THREAD, begin + 70_000, 20_000),
            (Kind.CALL, "cudaLaunchKernel", THREAD, begin + 72_000, 5000),
            (Kind.COLLECTIVE, "ncclDevKernel_AllReduce_Sum_f32", OTHER_STREAM, begin + 600_000 + late, 200_000 - late),
        ]
        number = 2 * step + 1
        correlations += [-1, -1, -1, number, number, -1, number + 1, number + 1]
    groups = [0.0 if row[0] == Kind.COLLECTIVE else -1.0 for row in rows]
    return made(rows, rank, GROUP, correlation=correlations, group=groups)


def test_a_slower_kernel_is_given_to_its_operator() -> None:
    answer = difference([trained([100_000, 101_000] * 4)], [trained([300_000, 301_000] * 4)])
    adds_up(answer)
    [slower] = only(answer, PartKind.SLOWER, PartKind.ADDED, PartKind.GONE, PartKind.FASTER)
    assert (slower.kind, slower.operator) == (PartKind.SLOWER, ("aten::linear", "aten::addmm"))
    assert slower.seconds.value == pytest.approx(200e-6, abs=1e-9)
    assert slower.first_names == slower.second_names == ("gemm",)
    [idle] = only(answer, PartKind.IDLE, PartKind.HOST)  # the step itself is as long as before
    assert idle.seconds.value == pytest.approx(-200e-6, abs=1e-9)
    assert "c10d::allreduce_" in idle.operator


def test_kernels_of_other_names_meet_in_the_operator_around_them() -> None:
    first = [trained([100_000] * 4, operator="aten::cudnn_gemm", kernel="sm90_gemm")]
    second = [trained([150_000] * 4, operator="aten::miopen_gemm", kernel="Cijk_Alik")]
    answer = difference(first, second)
    adds_up(answer)
    [slower] = only(answer, PartKind.SLOWER, PartKind.ADDED, PartKind.GONE)
    assert (slower.kind, slower.operator) == (PartKind.SLOWER, ("aten::linear",))
    assert (slower.first_names, slower.second_names) == (("sm90_gemm",), ("Cijk_Alik",))


def test_operators_are_added_and_gone() -> None:
    rows: list[Row] = [(Kind.OPERATOR, "aten::relu", THREAD, 0, 10), (Kind.OPERATOR, "aten::gelu", THREAD, 0, 30)]
    answer = difference([made(rows[:1])], [made(rows[1:])])
    adds_up(answer)
    kinds = {part.kind: (part.operator, part.seconds.value) for part in answer.parts}
    assert kinds == {
        PartKind.GONE: (("aten::relu",), pytest.approx(-10e-9)),
        PartKind.ADDED: (("aten::gelu",), pytest.approx(30e-9)),
    }


def test_a_late_rank_makes_the_others_wait() -> None:
    first = [trained([100_000, 101_000] * 4, rank=rank) for rank in range(2)]
    second = [trained([100_000, 101_000] * 4, rank=rank, late=90_000 * rank) for rank in range(2)]
    answer = difference(first, second)
    adds_up(answer)
    [wait] = only(answer, PartKind.WAIT)
    assert (wait.rank, wait.rank_seconds) == (0, pytest.approx(90e-6))
    assert wait.seconds.value == pytest.approx(45e-6)
    [transfer] = only(answer, PartKind.TRANSFER)
    assert transfer.seconds.value == pytest.approx(-90e-6)  # of 200 us, all of which passed for transfer before


def test_different_world_sizes_are_compared_by_their_means() -> None:
    answer = difference([trained([100_000] * 4)], [trained([100_000] * 4, rank=rank) for rank in range(2)])
    adds_up(answer)
    assert all(part.rank is None for part in answer.parts)
    assert "A has 1 ranks, B 2: means over ranks are compared" in answer.notes


def test_empty_traces_and_none() -> None:
    answer = difference([made([])], [trained([100_000] * 4)])
    adds_up(answer)
    assert answer.first.step_seconds == 0
    both = difference([made([])], [made([])])
    adds_up(both)
    assert both.parts == ()
    with pytest.raises(InvalidInputError, match="no traces"):
        difference([], [made([])])


def test_a_trace_without_marked_steps_is_one_step() -> None:
    answer = difference([made([(Kind.KERNEL, "k", STREAM, 5, 10)])], [made([(Kind.KERNEL, "k", STREAM, 0, 30)])])
    adds_up(answer)
    [part] = answer.parts
    assert (part.kind, part.operator, part.seconds.value) == (PartKind.SLOWER, ("k",), pytest.approx(20e-9))
    assert np.isnan(part.seconds.low)
    assert "no steps are marked: the whole trace counts as one step" in answer.notes
    assert "one step each: no intervals" in answer.notes


kinds = st.sampled_from([kind for kind in Kind if kind != Kind.FRAME])
rows = st.tuples(kinds, st.sampled_from(["a", "b", "all_reduce", "c #1", "c #2"]), st.integers(0, 3))
events = st.lists(st.tuples(rows, st.integers(0, 60), st.integers(0, 25), st.integers(-1, 4)), max_size=25)


def drawn_traces(ranks: list[list[tuple[tuple[Kind, str, int], int, int, int]]]) -> list[RankTrace]:
    return [
        made(
            [(kind, name, place, begin, ns) for (kind, name, place), begin, ns, _ in one],
            rank,
            correlation=[number if number else -1 for *_, number in one],
        )
        for rank, one in enumerate(ranks)
    ]


@given(st.lists(events, min_size=1, max_size=3), st.lists(events, min_size=1, max_size=3))
@settings(max_examples=150)
def test_whatever_the_traces_are_the_parts_sum_to_the_steps(
    first: list[list[tuple[tuple[Kind, str, int], int, int, int]]],
    second: list[list[tuple[tuple[Kind, str, int], int, int, int]]],
) -> None:
    sides = [drawn_traces(ranks) for ranks in (first, second)]
    for traces in sides:
        steps, _ = parts_of(traces)
        assert np.array_equal(steps.parts.sum(axis=2), steps.time)
        assert (steps.parts >= 0).all()
    answer = difference(*sides)
    adds_up(answer)
    assert answer.unexplained.value == 0
    assert difference(sides[0], sides[0]).seconds.value == 0


@needs_data(PAIRS)
@pytest.mark.parametrize("model", MODELS)
def test_classes_of_pairs_equal_those_of_another_tool(model: str) -> None:
    for device in ("h100", "mi300"):
        steps, _ = parts_of(read(f"pairs/{device}.{model}.json.gz"))
        with (PAIRS / f"{device}.{model}.gpu_timeline.csv").open() as stream:
            other = {row["type"]: float(row["time ms"]) for row in csv.DictReader(stream)}
        sums = np.array([steps.parts[..., steps.keys % 6 == part].sum() for part in range(6)]) / MS
        assert sums[4] + sums[5] == pytest.approx(other["idle_time"], rel=1e-3)
        assert steps.time.sum() / MS == pytest.approx(other["total_time"], rel=1e-3)
        assert sums[1] + sums[2] == other["exposed_comm_time"] == 0
        busy = other["computation_time"] + other["exposed_memcpy_time"]  # there, setting memory is computation
        assert sums[0] + sums[3] == pytest.approx(busy, rel=1e-3)


@needs_data(PAIRS)
@pytest.mark.parametrize("model", MODELS)
def test_two_vendors_kernels_are_compared_by_operator(model: str) -> None:
    answer = difference(*(read(f"pairs/{device}.{model}.json.gz") for device in ("h100", "mi300")))
    adds_up(answer)
    assert not only(answer, PartKind.ADDED, PartKind.GONE)
    [attention] = [one for one in only(answer, PartKind.SLOWER) if one.operator[-1] == "aten::_flash_attention_forward"]
    assert attention.second_names[0].startswith("attn_fwd")
    assert attention.first_names[0].startswith("void pytorch_flash::flash_fwd")


@needs_data(KINETO)
def test_an_injected_delay_is_the_rank_s_own_time_and_the_others_wait() -> None:
    answer = difference(gloo("plain"), gloo("slow1"))
    adds_up(answer)
    [injected] = [part for part in answer.parts if part.rank == 1 and part.kind == PartKind.HOST][:1]
    assert injected.rank_seconds == pytest.approx(0.030, abs=0.003)
    assert injected.seconds.low > 0
    [wait] = only(answer, PartKind.WAIT)
    assert wait.rank == 0
    assert wait.rank_seconds is not None
    assert wait.rank_seconds > 0.025
    assert "rank 1's" in answer.sentence


@needs_data(KINETO)
def test_halves_of_one_run_differ_by_nothing() -> None:
    sets = [
        *([rank] for rank in (*gloo("plain"), *gloo("slow1"), *read("steps"))),
        *(read(f"kineto/{name}.json.gz") for name in ("a100_rank3of8", "v100_rank1of2")),
    ]
    whole, parts = [], []
    for traces in sets:
        steps, paths = parts_of(traces)
        count = len(steps.time)
        for pair in ((slice(count // 2), slice(count // 2, None)), (slice(0, None, 2), slice(1, None, 2))):
            answer = difference_of_steps(*(steps.of_steps(one) for one in pair), paths)
            adds_up(answer)
            whole.append(answer.seconds.low <= 0 <= answer.seconds.high)
            parts += [one.seconds.low <= 0 <= one.seconds.high for one in answer.parts]
    assert np.mean(whole) >= 0.9
    assert np.mean(parts) >= 0.9


@needs_data(KINETO)
def test_two_traces_of_120_000_events_take_less_than_two_seconds_of_a_processor() -> None:
    begin = time.process_time()
    answer = difference(*(read_traces([KINETO / "v100_rank1of2.json.gz"]) for _ in range(2)))
    assert time.process_time() - begin < 2
    assert answer.seconds.value == 0
