import shutil
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path

import pytest

from crosswind.data.lake.lake import to_table
from crosswind.data.schema.answers.explanations import CauseShare, Explanation, Interval, Verdict
from crosswind.data.schema.metric import NODE_KEYS, Column, Kind, MetricSet
from crosswind.data.schema.run import Rank, Run, RunState
from crosswind.data.schema.steps import STEP
from crosswind.data.store.features import all_runs
from crosswind.data.store.store import Store
from crosswind.models.explain.explain import explain_runs

MS = 1_000_000
START_NS = 1_760_000_000_000_000_000
CPU = MetricSet("cpu", "made", (*NODE_KEYS, Column("user_seconds_total", "made", Kind.COUNTER, "float64", "s")))


@dataclass(frozen=True)
class Recorded:
    """A run as the tests make it: 2 ranks; rank 1 computes `slower_ms` longer and waits for its core meanwhile."""

    run_id: str
    workload: str = "nanogpt"
    steps: int = 24
    compute_ms: float = 40
    slower_ms: float = 0
    state: RunState = RunState.COMPLETED
    configuration: Mapping[str, int | float | str | bool] = field(default_factory=lambda: {"batch_size": 8})
    tags: Mapping[str, str] = field(default_factory=dict)
    minute: int = 0


def write(store: Store, run: Recorded) -> None:
    start = START_NS + run.minute * 60 * 1000 * MS
    ended = None if run.state is RunState.RUNNING else start + 30_000 * MS
    stored = Run(
        run.run_id,
        run.workload,
        "lab",
        run.state,
        2,
        run.configuration,
        "77",
        ("a", "b"),
        start,
        ended,
        tags=run.tags,
        command=("torchrun", "train.py"),
        software={"torch": "2.13"},
    )
    with store.catalog.write() as session:
        session.runs.merge(stored)
        for rank, node in enumerate(("a", "b")):
            session.ranks.merge(Rank(run.run_id, rank, node, 100 + rank, start, ended))
    if not run.steps:
        return
    rows = [_row(run, start, step, rank) for step in range(run.steps) for rank in range(2)]
    store.lake.append(f"steps-{run.run_id}", to_table(STEP, {name: [row[name] for row in rows] for name in rows[0]}))
    samples = {"ts_ns": [start, start + MS] * 2, "node": ["a", "a", "b", "b"], "device": ["all"] * 4}
    counters = {"boot_id": ["x"] * 4, "user_seconds_total": [0.0, 1.0, 0.0, 1.0]}
    store.lake.append(f"cpu-{run.run_id}", to_table(CPU, {**samples, **counters}))


def _row(run: Recorded, start: int, step: int, rank: int) -> dict[str, int | str]:
    jitter = (step * 7 + len(run.run_id)) % 5 * 0.2  # ms: steady, but not constant
    late = run.slower_ms if rank == 1 else 0.0
    local = run.compute_ms + jitter + late
    duration = run.compute_ms + jitter + run.slower_ms + 5
    times = {
        "duration_seconds": duration,
        "input_seconds": 2.0,
        "compute_seconds": local - 2.0,
        "comm_seconds": duration - local,
        "checkpoint_seconds": 0.0,
        "other_seconds": 0.0,
        "tail_seconds": 1.0,
        "cpu_user_seconds": local - late - 2.0,
        "cpu_system_seconds": 0.1,
        "run_queue_wait_seconds": 0.3 + late,
    }
    keys: dict[str, int | str] = {"ts_ns": start + step * 50 * MS, "run_id": run.run_id, "rank": rank, "step": step}
    return {**keys, **{name: round(value * MS) for name, value in times.items()}, "minor_faults": 3}


@pytest.fixture(scope="session")
def homes(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Folders of an empty store and of the lab's with its verdicts, made once and copied for each test."""
    folder = tmp_path_factory.mktemp("homes")
    Store.open(folder / "empty").close()
    shutil.copytree(folder / "empty", folder / "lab")
    with Store.open(folder / "lab") as lab:
        for number in range(5):
            run = Recorded(f"r{number}", minute=number, compute_ms=40 + number * 0.1)
            write(lab, replace(run, slower_ms=30, tags={"injected": "cpu_hog:1:2"}) if number == 3 else run)
        write(lab, Recorded("lost", workload="bert", steps=0, state=RunState.LOST, minute=9))
        write(lab, Recorded("live", workload="bert", steps=6, state=RunState.RUNNING, minute=10))
        explain_runs(lab, all_runs(lab))
    return folder


@pytest.fixture
def store(homes: Path, tmp_path: Path) -> Iterator[Store]:
    """An empty store."""
    with Store.open(Path(shutil.copytree(homes / "empty", tmp_path / "store"))) as opened:
        yield opened


@pytest.fixture
def lab(homes: Path, tmp_path: Path) -> Iterator[Store]:
    """Five runs of one cohort, the fourth with a CPU hog, one of another without steps, and one still running."""
    with Store.open(Path(shutil.copytree(homes / "lab", tmp_path / "lab"))) as opened:
        yield opened


@pytest.fixture
def record() -> Callable[..., None]:
    """Records a run into a store."""

    def recorded(store: Store, run_id: str, **facts: object) -> None:
        write(store, Recorded(run_id, **facts))  # type: ignore[arg-type]

    return recorded


SLOW = Explanation(
    run_id="r3",
    verdict=Verdict.SLOW,
    sentence="Slow: 1.5x the expected step time.",
    next_action="Pin it.",
    cohort_runs=4,
    steps=100,
    measured_seconds=15.0,
    expected_seconds=10.0,
    excess=Interval(5.0, 4.0, 6.0),
    shares=(
        CauseShare("network", Interval(0.5, 0.1, 0.9), "collectives ran longer"),
        CauseShare("cpu_contention", Interval(4.0, 3.5, 4.5), "waited for a core"),
    ),
    unexplained=Interval(0.5, -0.5, 1.5),
    cause="cpu_contention",
    confidence=0.97,
    culprit_rank=1,
    culprit_ratio=0.92,
)


@pytest.fixture
def slow() -> Explanation:
    """An explanation of a slow run: 5 s beyond 10 s, 4 s of them by CPU contention."""
    return SLOW


@pytest.fixture
def unsure() -> Explanation:
    """An explanation that abstains."""
    return Explanation("r9", Verdict.INSUFFICIENT_EVIDENCE, "Not enough evidence.", "Repeat it.", 0, 3)
