"""The README of exported runs: what was measured, how, on which machine, and its limits."""

import platform
import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from datetime import UTC, datetime

import pyarrow as pa

from crosswind.data.schema.injection import Injected
from crosswind.data.schema.run import Run, RunState
from crosswind.ingest.lab.laboratory import LINK_MEGABITS
from crosswind.ingest.lab.node_agents import INTERVAL_SECONDS
from crosswind.ingest.lab.plans.plan import SHARES, STEPS
from crosswind.ingest.lab.workers.order import STEPS_A_CHECKPOINT
from crosswind.ingest.preflight.measure import cores

TITLE = "# Training runs under known faults"
CARD = """{title}

{planned} runs ({failed} of them failed) and {neighbours} jobs of neighbours, measured from {first} to {last} by

    crosswind lab run --plan samples && crosswind lab export .

**What ran.** Three small PyTorch {torch} programs that really learn, by DistributedDataParallel over gloo, {steps}
steps a run, 2 to 4 ranks: a byte-level transformer on the source text of Python's standard library, a
convolutional classifier of generated images, and a recommender with a large embedding table. Every rank writes and
syncs a checkpoint each {checkpoint} steps.

**Where.** Hosts are network namespaces of one machine ({cores} cores, Linux {kernel}, {machine}), joined by a
bridge; each link is capped at {megabits:g} Mbit/s. Ranks are pinned to cores in turn. Cohorts with `link` =
`relay` have one host behind a user-space relay, which can add latency and is slower than a direct link even when
it adds none.

**How it was measured.** Worker processes stay alive from run to run, so that no run pays for imports; each cohort
was warmed up by two runs that are not here. Runs of all cohorts and conditions stand in one random order. A fault
begins before the run or in its middle, and some end before the run does. `injections` holds what was really done:
times are taken right around the kernel's answer. An agent in every host samples each {interval:g} s; kept are the
rows from 0.3 s before a run to 0.3 s after it, without columns that held nothing and `mono_ns`.

**Split.** By place in the order, in the run's tag `split`: {split}. Test runs are later than all others.

| fault | unit | times injected |
|---|---|---|
{faults}

| file | rows | content |
|---|---|---|
{files}

Values are raw, as the kernel gave them; each file's schema (`crosswind.set`) holds the unit and scale of every
column. `crosswind.data.samples.lab_runs.load_lab_samples(store)` loads them into a store.

**Limits.** One machine: hosts share its cores, caches, memory bus and disk, so that `cpu`, `memory`, `pressure`
and `disk` of all nodes describe the same hardware, and a fault on one host is felt on others. No accelerator, no
real network card, no congestion inside a switch. Runs last seconds, not days. Three or four ranks share two cores.
Healthy runs are noisy, as the machine is; nothing was left out for being an outlier. The tags `injected`, `split`,
`position` and `plan` tell the truth: no model may read them.
"""
WHAT = {
    "runs": "workload, configuration, times, state, tags",
    "ranks": "node and process of each rank",
    "injections": "what was done to which rank, from when to when",
    "step": "phases and processor time of each step of each rank",
    "collective": "arrival and duration of each gradient bucket on each rank",
}
NAMED = re.compile(r"^\| `(?P<file>\w+\.parquet)` \|", re.MULTILINE)


def data_card(runs: Sequence[Run], injections: Iterable[Injected], tables: Mapping[str, pa.Table]) -> str:
    """Return the README's text."""
    planned = [run for run in runs if "position" in run.tags]
    times = [run.started_ns for run in runs if run.started_ns is not None]
    return CARD.format(
        title=TITLE,
        planned=len(planned),
        failed=sum(run.state is RunState.FAILED for run in planned),
        neighbours=len(runs) - len(planned),
        first=_minute(min(times, default=0)),
        last=_minute(max(times, default=0)),
        torch=next((run.software["torch"] for run in runs if "torch" in run.software), ""),
        steps=STEPS,
        checkpoint=STEPS_A_CHECKPOINT,
        cores=cores(),
        kernel=platform.release(),
        machine=platform.machine(),
        megabits=LINK_MEGABITS,
        interval=INTERVAL_SECONDS,
        split=_split(planned),
        faults=_faults(injections),
        files="\n".join(
            f"| `{name}.parquet` | {len(table)} | {WHAT.get(name, 'samples')} |" for name, table in tables.items()
        ),
    )


def files_named_in(card: str) -> set[str]:
    """Return the tables that an earlier card names; none for another text."""
    return {match["file"] for match in NAMED.finditer(card)} if card.startswith(f"{TITLE}\n") else set()


def _faults(injections: Iterable[Injected]) -> str:
    counted = Counter((injection.kind, injection.unit) for injection in injections)
    return "\n".join(f"| `{kind}` | {unit} | {count} |" for (kind, unit), count in sorted(counted.items()))


def _split(planned: Sequence[Run]) -> str:
    counted = Counter(run.tags.get("split", "") for run in planned)
    return ", ".join(f"`{name}` {counted[name]} runs" for name, _ in SHARES)


def _minute(time_ns: int) -> str:
    return f"{datetime.fromtimestamp(time_ns * 1e-9, tz=UTC):%Y-%m-%d %H:%M} UTC"
