"""A small store filled through the doors: runs of the sample data, a job with its accounting, samples of this node."""

import os
import socket
from pathlib import Path

import pyarrow.compute as pc
import pyarrow.parquet as pq
from tests.cli.asking import answered
from tests.traced_run import store_traces

from crosswind.data.samples.lab_runs import load_lab_runs
from crosswind.data.schema.occupancy import Allocation, Source
from crosswind.data.store.store import Store
from crosswind.models.registry.registry import Registry

SYSTEM, JOB, NODE = "fault-lab", "4711", socket.gethostname()
WORKLOAD, WORLD_SIZE = "image-classifier", 2
CONFIGURATION = '"batch": (32|64),.*"link": "direct"'
MODEL, CHECKED = "run_seconds", "memory"
SAMPLES = Path(__file__).parents[3] / "data" / "samples" / "lab"
ACCOUNTING = f"""\
JobIDRaw|JobName|User|Account|Submit|Start|End|ElapsedRaw|TimelimitRaw|State|ExitCode|NNodes|NCPUS|NodeList|ConsumedEnergyRaw
{JOB}|train|anna|physics|1795200000|1795200010|1795203610|3600|120|COMPLETED|0:0|1|8|{NODE}|52000
"""
STARTED_NS, ENDED_NS = 1_795_200_010_000_000_000, 1_795_203_610_000_000_000
PLACE = Allocation(
    JOB, NODE, NODE, Source.PROLOG, SYSTEM, uid=1000, started_ns=STARTED_NS, ended_ns=ENDED_NS, gpus=("0",), cpus=8
)
PROGRAM = ("sh", "-c", "sleep 1")

TRACED_RUN = "01M7ZXDE97BPTGGSPHJ8KRR09D"


def fill(home: Path, scratch: Path) -> None:
    """Fill a new store; `scratch` is a folder for what is read into it."""
    write_part_of_samples(scratch / "lab")
    with Store.open(home) as store:
        load_lab_runs(store, scratch / "lab")
        store_traces(store, TRACED_RUN)
    (scratch / "sacct.txt").write_text(ACCOUNTING)
    crosswind(home, "ingest", str(scratch / "sacct.txt"))
    crosswind(home, "run", "--", *PROGRAM, SLURM_JOB_ID=JOB)
    with Store.open(home) as store, store.catalog.write() as session:
        session.places.merge(PLACE)  # as a segment of the node's agent brings it
    crosswind(home, "check", "--seconds", "1", "--only", CHECKED)
    crosswind(home, "ingest")
    crosswind(home, "models", "train", MODEL)
    with Store.open(home) as store:  # a second version, as if the same runs had been learned from again
        registry = Registry(store)
        first = registry.load(MODEL)
        registry.promote(MODEL, registry.register(MODEL, first.model, first.record.evidence).version)


def crosswind(home: Path, *words: str, **variables: str) -> str:
    """Return what a verb prints, called in this process with these variables in its environment."""
    kept = {name: value for name, value in os.environ.items() if not name.startswith(("CROSSWIND_", "SLURM_"))}
    environment = kept | {"CROSSWIND_HOME": str(home), "CROSSWIND_SYSTEM": SYSTEM, "OMP_NUM_THREADS": "1"} | variables
    code, said, complained = answered(environment, *words)
    assert code == 0, (words, complained)
    return said


def write_part_of_samples(folder: Path, configuration: str = CONFIGURATION) -> None:
    """Write the tables of the runs of some cohorts of one workload, as `crosswind lab export` writes all."""
    folder.mkdir(parents=True)
    runs = pq.read_table(SAMPLES / "runs.parquet")
    is_chosen = pc.and_(pc.equal(runs["workload"], WORKLOAD), pc.equal(runs["world_size"], WORLD_SIZE))
    chosen = runs.filter(pc.and_(is_chosen, pc.match_substring_regex(runs["configuration"], configuration)))
    for path in SAMPLES.glob("*.parquet"):
        table = chosen if path.stem == "runs" else pq.read_table(path)
        if path.stem != "runs" and "run_id" in table.column_names:
            table = table.filter(pc.is_in(table["run_id"], chosen["run_id"]))
        pq.write_table(table, folder / path.name)
