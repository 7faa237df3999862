"""One rank of the probe's benchmark; run by torchrun from `benchmarks.probe`."""

import itertools
import json
import math
import os
import resource
import statistics
import tempfile
import threading
import time
from collections.abc import Callable
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Any

import torch
from torch import distributed, nn, profiler
from torch.nn.parallel import DistributedDataParallel

import crosswind
from crosswind.ingest.capture.plan import FOLDER, Plan
from crosswind.ingest.probe import run
from crosswind.ingest.probe.timeline import Timeline

PAIRS = int(os.environ["PAIRS"])
STEPS = 20  # of a block: the machine's pace drifts within seconds
WARM_UP = 3  # of them, that do not count
TURNS = 24  # of alternating steps, for each pair of blocks: about as long as these
FLUSH_SECONDS = 0.5  # so that every block has its share of the writer, and rather more than in use
T_95 = 1.96
EVENTS = 20_000
Now = tuple[float, float, float]
Times = tuple[float, float, float, float]  # wall, processor, the middle of the steps' wall; of the second the writer's
KINDS = ("wall", "processor", "typical")
WRITER = 3


def as_rank() -> None:
    rank = int(os.environ["RANK"])
    os.sched_setaffinity(0, {sorted(os.sched_getaffinity(0))[rank % os.cpu_count()]})
    torch.set_num_threads(1)
    events = events_ns() if rank == 0 else {}
    distributed.init_process_group("gloo")
    train = training()
    block(train, unwatched)
    beside = training()
    block(beside, unwatched)
    memory = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    run.FLUSH_SECONDS = FLUSH_SECONDS
    turns = {"probe": alternating(train, beside, PAIRS * TURNS)}
    turns["waiting_to_trace"] = alternating(train, beside, PAIRS * TURNS, waiting_to_trace)
    turns["probe_in_blocks"] = [turn(train, probe) for _ in range(max(3, PAIRS // 8))]
    memory = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - memory
    turns["torch_profiler"] = [turn(train, torch_profiler) for _ in range(max(3, PAIRS // 8))]
    if rank == 0:
        tell(turns, events, memory)
    distributed.destroy_process_group()


def training() -> Callable[[], Any]:
    """One optimizer step of a model whose gradients fill four buckets; some 25 ms."""
    torch.manual_seed(0)
    model = DistributedDataParallel(nn.Sequential(*(nn.Linear(512, 512) for _ in range(8))), bucket_cap_mb=2)
    optimizer, batch = torch.optim.SGD(model.parameters(), lr=1e-3), torch.ones(96, 512)

    def step() -> None:
        optimizer.zero_grad()
        model(batch).square().mean().backward()
        optimizer.step()

    step.model = model  # type: ignore[attr-defined]
    return step


class unwatched:  # noqa: N801 - used as a function
    """Nobody looks."""

    def __init__(self, _: Any) -> None: ...

    def __enter__(self) -> Callable[[range], Any]:
        return iter

    def __exit__(self, *_: object) -> None: ...


class probe(unwatched):  # noqa: N801
    """Our probe, watching the model."""

    def __init__(self, train: Any) -> None:
        self._run, self._model = crosswind.run(workload="benchmark", run_id=f"b{time.time_ns() // 10**10}"), train.model

    def __enter__(self) -> Callable[[range], Any]:
        run = self._run.__enter__()
        run.watch(self._model)
        return run.steps

    def __exit__(self, *error: Any) -> None:
        self._run.__exit__(*error)


class waiting_to_trace(probe):  # noqa: N801
    """Our probe as under `crosswind run --trace auto`, outside of captured steps."""

    def __enter__(self) -> Callable[[range], Any]:
        self._folder = tempfile.TemporaryDirectory()
        os.environ[FOLDER] = self._folder.name
        Plan("another run", (0, 1), 0, 10, 1).write(Path(self._folder.name))
        try:
            return super().__enter__()
        finally:
            del os.environ[FOLDER]

    def __exit__(self, *error: Any) -> None:
        super().__exit__(*error)
        self._folder.cleanup()


class torch_profiler(unwatched):  # noqa: N801
    """PyTorch's profiler."""

    def __init__(self, _: Any) -> None:
        self._profiler: AbstractContextManager[Any] = profiler.profile(activities=[profiler.ProfilerActivity.CPU])

    def __enter__(self) -> Callable[[range], Any]:
        self._profiler.__enter__()
        return iter

    def __exit__(self, *error: Any) -> None:
        self._profiler.__exit__(*error)


def alternating(
    plain: Callable[[], Any], watched: Callable[[], Any], turns: int, observer: type[probe] = probe
) -> list[tuple[Times, Times]]:
    """Steps of two like trainings, of which the probe watches one: without, with, with, without.

    What the probe's writer does beside any of them is reported separately, and is not in the processor time.
    """
    pairs = []
    with observer(watched) as steps:
        numbers = iter(steps(itertools.count()))  # type: ignore[arg-type]
        for _ in range(WARM_UP):
            next(numbers)
            watched()
            plain()
        writer = writer_clock()
        for _ in range(turns):
            moments = [moment(writer)]
            for train in (plain, watched, watched, plain):
                if train is watched:
                    next(numbers)
                train()
                moments.append(moment(writer))
            without, first, second, again = (
                (after[0] - before[0], after[1] - before[1]) for before, after in itertools.pairwise(moments)
            )
            writing = (moments[-1][2] - moments[0][2]) / 2
            pairs.append((mean_of(without, again, 0.0), mean_of(first, second, writing)))
    return pairs


def writer_clock() -> int:
    [writer] = [thread for thread in threading.enumerate() if thread.name == "crosswind-probe"]
    return time.pthread_getcpuclockid(writer.ident or 0)


def moment(writer: int) -> Now:
    """Seconds of the clock, of the process but for the probe's writer, and of that."""
    writing = time.clock_gettime(writer)
    return time.perf_counter(), time.process_time() - writing, writing


def mean_of(one: tuple[float, float], other: tuple[float, float], writing: float) -> Times:
    wall, used = (statistics.mean(both) for both in zip(one, other, strict=True))
    return wall, used, math.nan, writing


def block(train: Callable[[], Any], watcher: type[unwatched]) -> Times:
    distributed.barrier()
    begin, ends = (0.0, 0.0, 0.0), []
    with watcher(train) as steps:
        for number in steps(range(STEPS)):
            if number == WARM_UP:
                begin = now()
            train()
            ends.append(time.perf_counter())
        end = now()
    wall, used, writing = ((after - before) / (STEPS - WARM_UP) for before, after in zip(begin, end, strict=True))
    typical = statistics.median(after - before for before, after in itertools.pairwise(ends[WARM_UP:]))
    return wall, used, typical, writing


def now() -> Now:
    """Seconds of the clock, of the process and of the probe's writer, if it runs."""
    writer = next((thread for thread in threading.enumerate() if thread.name == "crosswind-probe"), None)
    if writer is None or writer.ident is None:
        return time.perf_counter(), time.process_time(), 0.0
    return time.perf_counter(), time.process_time(), time.clock_gettime(time.pthread_getcpuclockid(writer.ident))


def turn(train: Callable[[], Any], watcher: type[unwatched]) -> tuple[Times, Times]:
    """Mean times of a step without and with the watcher."""
    without, first, second, again = (block(train, observer) for observer in (unwatched, watcher, watcher, unwatched))
    return tuple(map(statistics.mean, zip(without, again, strict=True))), tuple(  # type: ignore[return-value]
        map(statistics.mean, zip(first, second, strict=True))
    )


def events_ns() -> dict[str, float]:
    """Return the nanoseconds that one event costs in a tight loop."""
    timeline = Timeline(0)

    def step() -> None:
        timeline.begin_step()
        timeline.batch_arrived()
        timeline.end_step()

    def collective() -> None:
        if arrival := timeline.arrive():
            timeline.collective(arrival, size_bytes=4, operation="all_reduce", group="g", blocked_since=arrival.time)

    costs = {"step_of_three_events": cost(step, timeline)}
    timeline.begin_step()
    timeline.batch_arrived()
    costs["collective_of_two_events"] = cost(collective, timeline)
    costs["recorded_value"] = cost(lambda: timeline.record("loss", 0.5), timeline)
    return costs


def cost(action: Callable[[], None], timeline: Timeline) -> float:
    best = math.inf
    for _ in range(EVENTS // 1000):
        begin = time.perf_counter_ns()
        for _ in range(1000):
            action()
        best = min(best, (time.perf_counter_ns() - begin) / 1000)
        timeline.settle()
        timeline.make_room()
    return best


def tell(turns: dict[str, list[tuple[Times, Times]]], events: dict[str, float], memory: int) -> None:
    figures: dict[str, float] = {f"{name}_ns": round(ns) for name, ns in events.items()}
    print("   ".join(f"{name.replace('_', ' ')}: {ns / 1000:.2f} us" for name, ns in events.items()))
    for name, pairs in turns.items():
        for place, kind in enumerate(KINDS):
            if math.isnan(pairs[0][0][place]):  # single steps have no middle one
                continue
            level = statistics.mean(without[place] for without, _ in pairs)  # a mean of ratios would tell noise as cost
            slowdowns = sorted((with_it[place] - without[place]) / level for without, with_it in pairs)
            mean, half = statistics.mean(slowdowns), T_95 * statistics.stdev(slowdowns) / math.sqrt(len(slowdowns))
            median, (low, high) = statistics.median(slowdowns), median_interval(slowdowns)
            step_ms = 1e3 * statistics.median(without[place] for without, _ in pairs)
            interval = f"95 % interval {mean - half:+.3%} to {mean + half:+.3%}"
            typical = f"median {median:+.3%}, {low:+.3%} to {high:+.3%}"
            print(f"{name:<15} {kind:<10} step {step_ms:6.2f} ms {mean:+8.3%}, {interval}; {typical}")
            figures |= {
                f"{name}_{kind}_slowdown": round(mean, 5),
                f"{name}_{kind}_half_interval": round(half, 5),
                f"{name}_{kind}_median_slowdown": round(median, 5),
                f"{name}_{kind}_step_seconds": round(step_ms / 1e3, 5),
            }
    writing, level = (
        statistics.mean(seconds) for seconds in zip(*((b[WRITER], a[1]) for a, b in turns["probe"]), strict=True)
    )
    print(f"of a step's processor time, the probe's writer takes {writing / level:.3%}")
    figures["writer_share"] = round(writing / level, 5)
    print(f"memory that the probe took at most: {memory / 1024:.1f} MiB")
    print(json.dumps(figures | {"probe_bytes": memory * 1024, "pairs": PAIRS, "steps_of_a_block": STEPS}))


def median_interval(ordered: list[float]) -> tuple[float, float]:
    """Values between which the median lies with 95 % confidence, whatever the distribution, by the signs' binomial."""
    half = T_95 * math.sqrt(len(ordered)) / 2
    low, high = len(ordered) / 2 - half, len(ordered) / 2 + half
    return ordered[max(0, math.floor(low))], ordered[min(len(ordered) - 1, math.ceil(high))]


if __name__ == "__main__":
    as_rank()
