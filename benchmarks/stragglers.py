"""Speed of the straggler rankings: 100 000 runs compared, and the detector's share of a core at a thousand ranks.

The fleet is made up: 2000 nodes, 8 ranks a run on as many nodes at random, heavy-tailed noise, 20 nodes slow by 8 to
30 %, a boot of every node in the middle, and 40 nodes whose pace changed at some time. Timed is the ranking from the
table of ranks, and, for runs in a store, what reading them costs.
The peer is what is usually done: a node's mean ratio to its run's median, named above 5 %, as health checks do.
"""

import json
import os
import platform
import time
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np
import pandas as pd

from crosswind.data.lake.lake import to_table
from crosswind.data.schema.answers.stragglers import PeerKind
from crosswind.data.schema.prediction import Floats
from crosswind.data.schema.run import Rank, Run, RunState
from crosswind.data.schema.steps import STEP
from crosswind.data.store.store import Store
from crosswind.models.stragglers.by_ranks import ranked_by_ranks
from crosswind.models.stragglers.detector import PHASES, StepRows, StragglerDetector
from crosswind.models.stragglers.fleet import fleet_ranking

RUNS, EACH, NODES = int(os.environ.get("RUNS", "100000")), 8, 2000
SLOW, CHANGED = 20, 40
STORED_RUNS, STORED_STEPS = 2000, 20
RANKS, STEPS_A_SECOND, SECONDS = 1000, 10, 60
MINUTE_NS = 60_000_000_000
START_NS = 1_767_225_600_000_000_000


def main() -> None:
    random = np.random.default_rng(0)
    extra, changed_at = nodes(random)
    table, boots = fleet(random, extra, changed_at)
    began = time.perf_counter()
    ranked, _, compared = ranked_by_ranks(table, boots, {})
    seconds = time.perf_counter() - began
    truth = {f"n{node}" for node in np.flatnonzero(extra[:, 1] > np.log(1.05))}
    named = {component.name for component in ranked if component.named and component.kind is PeerKind.NODE}
    naive = mean_ratio(table)
    print(f"{'':<34}{'named':>7}{'right':>7}{'missed':>8}{'wrong':>7}")
    for name, blamed in (("shrunken effects, present level", named), ("mean ratio above 5 %", naive)):
        print(f"{name:<34}{len(blamed):>7}{len(blamed & truth):>7}{len(truth - blamed):>8}{len(blamed - truth):>7}")
    read_seconds = reading()
    share = detector_share()
    print(
        f"{compared} runs ranked in {seconds:.2f} s; {STORED_RUNS} stored runs read and ranked in {read_seconds:.2f} s"
    )
    print(f"detector: {share:.2%} of a core for {RANKS} ranks at {STEPS_A_SECOND} steps a second")
    figures = {"ranked_runs": compared, "ranking_seconds": round(seconds, 2), "stored_seconds": round(read_seconds, 2)}
    figures |= {"stored_runs": STORED_RUNS, "detector_core_ratio": round(share, 5), "named_right": len(named & truth)}
    figures |= {"named_wrong": len(named - truth), "named_missed": len(truth - named)}
    figures |= {"naive_wrong": len(naive - truth), "naive_missed": len(truth - naive)}
    print(json.dumps({**figures, "machine": f"{os.cpu_count()} cores, {platform.machine()}"}))


def nodes(random: np.random.Generator) -> tuple[Floats, Floats]:
    """Each node's log time above its peers before and after its change, shape (NODES, 2), and when that was."""
    own = np.repeat(random.normal(0, 0.01, NODES)[:, None], 2, axis=1)
    chosen = random.permutation(NODES)
    own[chosen[:SLOW]] += random.uniform(np.log(1.08), np.log(1.3), SLOW)[:, None]
    moved = chosen[SLOW : SLOW + CHANGED]
    own[moved, random.integers(0, 2, CHANGED)] += random.uniform(np.log(1.08), np.log(1.3), CHANGED)
    changed_at = np.full(NODES, np.inf)
    changed_at[moved] = random.uniform(0.6, 0.9, CHANGED) * RUNS
    still = np.setdiff1d(np.arange(NODES), moved)
    own[still, 0] = own[still, 1]
    return own, changed_at


def fleet(random: np.random.Generator, extra: Floats, changed_at: Floats) -> tuple[pd.DataFrame, np.ndarray]:  # type: ignore[type-arg]
    node = np.array([random.integers(0, NODES, EACH) for _ in range(RUNS)])
    run, rank = np.repeat(np.arange(RUNS), EACH), np.tile(np.arange(EACH), RUNS)
    node = node.ravel()
    is_after = (run > changed_at[node]).astype(int)
    noise = 0.05 * random.standard_t(3, len(node))
    log_local = random.normal(0, 0.5, RUNS)[run] + extra[node, is_after] + 0.1 * (rank == 0) + noise
    started = START_NS + run * MINUTE_NS
    facts = {"system": "made-up", "workload": "w", "device": None, "rank": rank, "started_ns": started}
    text = {"run_id": pd.Series(run).astype(str), "node": "n" + pd.Series(node).astype(str)}
    place = "w, 8 ranks, rank " + pd.Series(rank).astype(str)
    table = pd.DataFrame({**text, **facts, "place": place, "ended_ns": started + MINUTE_NS, "log_local": log_local})
    return table, (run > RUNS // 2).astype(np.int64)


def mean_ratio(table: pd.DataFrame) -> set[str]:
    lag = table["log_local"] - table.groupby("run_id")["log_local"].transform("median")
    means = lag.groupby(table["node"]).mean()
    return set(means[means > np.log(1.05)].index)


def reading() -> float:
    """Seconds to read and rank runs of a store."""
    random = np.random.default_rng(1)
    with TemporaryDirectory() as folder, Store.open(Path(folder) / "store") as store:
        count = STORED_RUNS * STORED_STEPS * EACH
        run, step, rank = (np.indices((STORED_RUNS, STORED_STEPS, EACH)).reshape(3, -1)).tolist()
        local = random.integers(90_000_000, 100_000_000, count)
        started = [START_NS + number * MINUTE_NS for number in run]
        names = [f"r{number}" for number in run]
        times = {"duration_seconds": [101_000_000] * count, "comm_seconds": (101_000_000 - local).tolist()}
        columns = {"ts_ns": started, "run_id": names, "rank": rank, "step": step, **times}
        store.lake.append("made-up", to_table(STEP, columns))
        with store.catalog.write() as session:
            for number in range(STORED_RUNS):
                begun = START_NS + number * MINUTE_NS
                where = [f"n{node}" for node in random.integers(0, NODES, EACH)]
                state = RunState.COMPLETED
                session.runs.merge(Run(f"r{number}", "w", "s", state, EACH, started_ns=begun, ended_ns=begun + 1))
                for place, node in enumerate(where):
                    session.ranks.merge(Rank(f"r{number}", place, node, 1, begun))
        began = time.perf_counter()
        fleet_ranking(store, runs=STORED_RUNS)
        return time.perf_counter() - began


def detector_share() -> float:
    """Processor seconds for each second of steps that arrive once a second."""
    random = np.random.default_rng(2)
    steps = STEPS_A_SECOND * SECONDS
    phases = np.zeros((steps, RANKS, len(PHASES)))
    phases[:, :, PHASES.index("compute")] = 0.09 * (1 + 0.05 * random.standard_t(5, (steps, RANKS)))
    local = phases.sum(axis=2)
    comm = (local.max(axis=1, keepdims=True) + 0.005) - local
    step = np.repeat(np.arange(steps), RANKS)
    rank, ts_ns = np.tile(np.arange(RANKS), steps), START_NS + step * 100_000_000
    detector = StragglerDetector(RANKS)
    used, events = 0.0, 0
    for second in range(SECONDS):
        part = slice(second * STEPS_A_SECOND * RANKS, (second + 1) * STEPS_A_SECOND * RANKS)
        rows = StepRows(step[part], rank[part], ts_ns[part], phases.reshape(-1, len(PHASES))[part], comm.ravel()[part])
        began = time.process_time()
        events += len(detector.observe(rows))
        used += time.process_time() - began
    print(f"detector: {events} events in {SECONDS} s of {RANKS} equal ranks with heavy-tailed noise")
    return used / SECONDS


if __name__ == "__main__":
    main()
