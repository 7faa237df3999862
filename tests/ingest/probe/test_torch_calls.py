"""Records of the collectives that Python asks of PyTorch, over gloo in a group of one."""

import threading
import time
from collections.abc import Callable, Iterator
from typing import Any

import pytest
import torch
from torch import distributed
from torch.distributed import ProcessGroup, Work, _functional_collectives
from torch.distributed import all_reduce as imported_by_name

from crosswind.data.schema.errors import InvalidInputError
from crosswind.data.schema.steps import COLLECTIVE, STEP
from crosswind.ingest.probe.timeline import Timeline
from crosswind.ingest.probe.torch_calls import watch_calls, watch_calls_of
from crosswind.ingest.probe.torch_calls.groups import listed
from crosswind.ingest.probe.torch_calls.rpc import payload_bytes

Seen = list[tuple[Any, ...]]
FOUR = 4 * 4  # bytes of four float32


@pytest.fixture(scope="module", autouse=True)
def lone_rank(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """A process group of one."""
    store = distributed.FileStore(str(tmp_path_factory.mktemp("store") / "rendezvous"), 1)
    distributed.init_process_group("gloo", store=store, rank=0, world_size=1)
    yield
    distributed.destroy_process_group()


@pytest.fixture
def timeline() -> Iterator[Timeline]:
    timeline = Timeline(0)
    watch_calls(timeline)
    yield timeline
    timeline.close()


def columns_of(timeline: Timeline, action: Callable[[], object], *names: str) -> Seen:
    """Return what is recorded of the collectives of an action within a step."""
    timeline.begin_step()
    timeline.batch_arrived()
    action()
    timeline.end_step()
    timeline.settle()
    with timeline.taking(COLLECTIVE) as columns:
        return list(zip(*(columns.get(name, ()) for name in names), strict=True))


def seen(timeline: Timeline, action: Callable[[], object]) -> Seen:
    return columns_of(timeline, action, "operation", "group", "size_bytes")


def comm(timeline: Timeline) -> int:
    with timeline.taking(STEP) as columns:
        [nanoseconds] = columns["comm_seconds"]
    assert isinstance(nanoseconds, int)
    return nanoseconds


def four() -> torch.Tensor:
    return torch.ones(4)


CALLS: dict[str, tuple[Callable[[], object], Seen]] = {
    "all_reduce": (lambda: distributed.all_reduce(four()), [("all_reduce", "world", FOUR)]),
    "imported by name": (lambda: imported_by_name(four()), [("all_reduce", "world", FOUR)]),
    "not waited for at once": (
        lambda: distributed.all_reduce(four(), async_op=True).wait(),
        [("all_reduce", "world", FOUR)],
    ),
    "all_gather": (lambda: distributed.all_gather([four()], four()), [("all_gather", "world", FOUR)]),
    "all_gather_single": (
        lambda: distributed.all_gather_single(four(), four()),
        [("all_gather", "world", FOUR)],
    ),
    "reduce_scatter": (lambda: distributed.reduce_scatter(four(), [four()]), [("reduce_scatter", "world", FOUR)]),
    "reduce_scatter_single": (
        lambda: distributed.reduce_scatter_single(four(), four()),
        [("reduce_scatter", "world", FOUR)],
    ),
    "broadcast": (lambda: distributed.broadcast(four(), 0), [("broadcast", "world", FOUR)]),
    "reduce": (lambda: distributed.reduce(four(), 0), [("reduce", "world", FOUR)]),
    "gather": (lambda: distributed.gather(four(), [four()], 0), [("gather", "world", FOUR)]),
    "scatter": (lambda: distributed.scatter(four(), [four()], 0), [("scatter", "world", FOUR)]),
    "all_to_all_single": (
        lambda: distributed.all_to_all_single(four(), four()),
        [("all_to_all", "world", FOUR)],
    ),
    "barrier": (distributed.barrier, [("barrier", "world", 0)]),
    "functional": (
        lambda: _functional_collectives.all_reduce(four(), "sum", distributed.group.WORLD) + 1,
        [("all_reduce", "world", FOUR)],
    ),
    "objects are sizes and bytes": (
        lambda: distributed.broadcast_object_list(["four"], src=0),
        [("broadcast", "world", 8), ("broadcast", "world", 19)],
    ),
    "nobody waits": (lambda: distributed.all_reduce(four(), async_op=True), []),
}


@pytest.mark.parametrize("name", CALLS)
def test_a_collective_counts_once_with_its_bytes(timeline: Timeline, name: str) -> None:
    action, expected = CALLS[name]
    assert seen(timeline, action) == expected


def test_gradients_pass_functional_collectives_that_are_watched(timeline: Timeline) -> None:
    weights = torch.ones(4, requires_grad=True)

    def both_passes() -> None:
        (_functional_collectives.all_gather_single(weights, 0, distributed.group.WORLD) * 2).sum().backward()

    assert seen(timeline, both_passes) == [("all_gather", "world", FOUR), ("reduce_scatter", "world", FOUR)]
    assert weights.grad.tolist() == [2, 2, 2, 2]


def test_what_other_threads_do_is_no_part_of_the_loop(timeline: Timeline) -> None:
    def elsewhere() -> None:
        thread = threading.Thread(target=distributed.barrier)
        thread.start()
        thread.join()

    assert seen(timeline, elsewhere) == []
    assert comm(timeline) == 0
    seen(timeline, distributed.barrier)
    assert comm(timeline) > 0


def test_a_wait_in_another_thread_is_none_of_the_loop(timeline: Timeline) -> None:
    def waited_for_elsewhere() -> None:
        work = distributed.all_reduce(four(), async_op=True)
        thread = threading.Thread(target=work.wait)
        thread.start()
        thread.join()

    assert seen(timeline, waited_for_elsewhere) == [("all_reduce", "world", FOUR)]
    assert comm(timeline) == 0


ASYNCHRONOUS: dict[str, Callable[[], Callable[[], object]]] = {
    "work": lambda: distributed.all_reduce(four(), async_op=True).wait,
    "functional": lambda: _functional_collectives.all_reduce(four(), "sum", distributed.group.WORLD).wait,
}


@pytest.mark.parametrize("name", ASYNCHRONOUS)
def test_the_end_of_what_was_done_before_anybody_waited_is_unknown(timeline: Timeline, name: str) -> None:
    ASYNCHRONOUS[name]()()  # the first one takes longer

    def late() -> None:
        wait = ASYNCHRONOUS[name]()
        time.sleep(0.02)
        wait()

    def five() -> None:
        for _ in range(5):
            late()

    durations = [duration for (duration,) in columns_of(timeline, five, "duration_seconds")]
    assert len(durations) == 5
    assert durations.count(None) >= 4  # a wait that the kernel interrupts looks like one that waited
    [[duration]] = columns_of(timeline, distributed.barrier, "duration_seconds")
    assert duration > 0


def test_a_group_is_called_by_its_ranks(timeline: Timeline) -> None:
    group = distributed.new_group([0])
    assert seen(timeline, lambda: distributed.all_reduce(four(), group=group)) == [("all_reduce", "ranks 0", FOUR)]


def test_transfers_are_called_by_their_ranks_and_what_their_ends_are(timeline: Timeline) -> None:
    groups, world = watch_calls(timeline).groups, distributed.group.WORLD
    assert groups.transfer(world, 0, 0) == "world 0>0"
    groups.call_transfers(world, "pipeline", {0: "stage2"})
    assert groups.transfer(world, 0, 0) == "pipeline stage2>stage2 0>0"
    assert groups.name(world) == "world"


def test_models_on_other_devices_are_refused(timeline: Timeline) -> None:
    with pytest.raises(InvalidInputError, match="'meta' is not timed; expected cpu or cuda"):
        watch_calls_of(torch.nn.Linear(2, 2, device="meta"), timeline)


@pytest.mark.parametrize("backend", ["eager", "aot_eager"])
def test_compiled_code_does_what_it_did(timeline: Timeline, backend: str) -> None:
    def reduced(values: torch.Tensor) -> torch.Tensor:
        return _functional_collectives.all_reduce(values * 2, "sum", distributed.group.WORLD) + 1

    torch.compiler.reset()
    compiled = torch.compile(reduced, backend=backend, fullgraph=True)
    operations = {operation for operation, _, _ in seen(timeline, lambda: compiled(four()))}
    assert compiled(four()).tolist() == [3, 3, 3, 3]
    assert operations <= {"all_reduce"}  # whether it is seen is up to the compiler


def test_outside_a_step_nothing_is_recorded(timeline: Timeline) -> None:
    distributed.barrier()
    assert seen(timeline, lambda: None) == []


def test_types_stay_and_everything_is_put_back() -> None:
    before = {owner: dict(vars(owner)) for owner in (ProcessGroup, Work)}
    packet = torch.ops._c10d_functional.all_reduce
    operator, key = packet._op, hash(packet)
    timeline = Timeline(0)
    watch_calls(timeline)
    assert watch_calls(timeline) is watch_calls(timeline)  # asked again, it replaces nothing
    assert type(distributed.all_reduce(four(), async_op=True)) is Work
    assert (packet._op is not operator, hash(packet)) == (True, key)
    timeline.close()
    assert {owner: dict(vars(owner)) for owner in (ProcessGroup, Work)} == before
    assert packet._op is operator


def test_a_second_open_run_is_refused(timeline: Timeline) -> None:
    with pytest.raises(InvalidInputError, match="another open run of this process watches"):
        watch_calls(Timeline(0))


def test_a_failure_of_ours_is_logged_once_and_the_caller_gets_what_pytorch_gives(
    timeline: Timeline, caplog: pytest.LogCaptureFixture
) -> None:
    def both() -> None:
        for _ in range(2):
            with pytest.raises(TypeError, match="incompatible function arguments"):
                distributed.group.WORLD.allreduce(5)

    assert seen(timeline, both) == []
    [warning] = [record.getMessage() for record in caplog.records if record.name == "crosswind"]
    expected = "crosswind stops watching collectives: AttributeError: 'int' object has no attribute 'is_cpu'"
    assert warning == expected
    assert seen(timeline, distributed.barrier) == []


def test_a_group_in_python_that_leaves_its_methods_to_pytorch_gets_pytorchs_own(timeline: Timeline) -> None:
    class Own(ProcessGroup):  # type: ignore[misc]
        """It has no backend."""

    def refused() -> None:
        with pytest.raises(RuntimeError, match="No backend type associated with device type"):
            Own(0, 1).barrier()
        distributed.barrier()

    assert seen(timeline, refused) == [("barrier", "world", 0)]
    assert watch_calls(timeline).groups.name(Own(0, 1)) == "ranks of 1"


def test_what_contains_itself_counts_once() -> None:
    payload: list[object] = [four(), {"bias": (four(),)}]
    payload += [payload, payload]
    assert payload_bytes(payload) == 2 * FOUR


@pytest.mark.parametrize(
    ("ranks", "text"),
    [
        ([5], "5"),
        ([1, 0], "0,1"),
        ([0, 1, 2, 3], "0-3"),
        ([0, 8, 16, 24], "0-24/8"),
        ([0, 1, 5], "0,1,5"),
        ([*range(9), 11], "0-11 (10 ranks, e559d6c9)"),  # CRC-32 of the text "0,1,2,3,4,5,6,7,8,11"
    ],
)
def test_ranks_are_listed_in_little_space(ranks: list[int], text: str) -> None:
    assert listed(ranks) == text
