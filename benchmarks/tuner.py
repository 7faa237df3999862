"""Time of one suggestion, compared with random search: over a listed space, one too big to list, and at a service.

Figures of the service are processor time, also as multiples of a fixed loop, since other work on the machine shows
less in them: the first suggestion of a study (its search is made), and later ones, with and without two prior studies.
"""

import json
import platform
import statistics
import tempfile
import time
from pathlib import Path

from crosswind.data.schema.trial import Configuration, Study, Trial, TrialRecord, TrialState
from crosswind.data.store.store import Store
from crosswind.models.tuner.evidence.stored_prior_studies import StoredPriorStudies
from crosswind.models.tuner.search.every_tuner import TUNERS
from crosswind.models.tuner.search.search import PriorStudies
from crosswind.models.tuner.search.search_cache import FindPriorStudies, no_prior_studies
from crosswind.models.tuner.search.tuner import Tuner
from crosswind.models.tuner.service.catalog import CatalogStudyService, Lease
from crosswind.models.tuner.space.space import Space

KNOWN = (10, 40, 160)  # trials done before
ROUNDS = 7
LARGE = Space.from_json({name: {"kind": "int", "low": 0, "high": 35} for name in ("a", "b", "c")})
LARGE_KNOWN = (100, 4900)
SERVICE_ROUNDS = 21
LEASE = Lease("bench", 600)
SPACES = {
    "192 listed": Space.from_json(
        {
            "micro_batch": {"kind": "ordinal", "values": [2, 4, 8, 16]},
            "accumulation_steps": {"kind": "ordinal", "values": [1, 4]},
            "bucket_cap_mb": {"kind": "ordinal", "values": [0.1, 0.5, 4.0]},
            "threads": {"kind": "ordinal", "values": [1, 2]},
            "gradient_as_bucket_view": {"kind": "boolean"},
            "precision": {"kind": "categorical", "values": ["fp32", "bf16"]},
        }
    ),
    "real-valued": Space.from_json(
        {
            "bucket_mb": {"kind": "float", "low": 0.5, "high": 64, "log": True},
            "workers": {"kind": "int", "low": 0, "high": 16},
            "batch": {"kind": "int", "low": 1, "high": 512, "log": True},
            "fused": {"kind": "boolean"},
        }
    ),
}


def seconds_to_suggest(tuner: Tuner, space: Space, n_known: int) -> float:
    """Median seconds of one suggestion with so many trials known."""
    trials = [
        Trial(configuration, TrialState.DONE, 1 + float(space.coordinates([configuration]).sum()))
        for configuration in space.random(n_known, seed=1)
    ]
    tuner.observe(trials)
    taken = []
    for _ in range(ROUNDS):
        begin = time.perf_counter()
        tuner.suggest(1)
        taken.append(time.perf_counter() - begin)
    return statistics.median(taken)


def fixed_loop_ms() -> float:
    """Processor time of work that is always the same."""
    begin = time.process_time()
    sum(number * number for number in range(2_000_000))
    return 1e3 * (time.process_time() - begin)


def objective(configuration: Configuration) -> float:
    return 1 + float(LARGE.coordinates([configuration]).sum())


def timed_suggestion(service: CatalogStudyService, name: str) -> tuple[float, TrialRecord]:
    """Milliseconds of processor time for one more trial, and the trial."""
    begin = time.process_time()
    [record] = service.suggest(name, 1, LEASE)
    return 1e3 * (time.process_time() - begin), record


def add_study(store: Store, name: str, n_known: int, seed: int) -> None:
    """A study over 46,656 configurations with so many trials done."""
    study = Study(name, name, LARGE.as_json(), "step_p50_seconds", "s", 0, 1, workload=name[-4:])
    with store.catalog.write() as session:
        session.studies.add(study)
        for place, configuration in enumerate(LARGE.random(n_known, seed=seed)):
            done = Trial(configuration, TrialState.DONE, objective(configuration), f"{name}-{place:05d}")
            session.leases.add(TrialRecord(done, name, owner="bench"))


def through_service() -> dict[str, float]:
    """Milliseconds of processor time of suggestions over SQLite: the first, and the median and longest after it."""
    figures: dict[str, float] = {}
    with tempfile.TemporaryDirectory() as folder, Store.open(Path(folder)) as store:
        for n_known in LARGE_KNOWN:
            add_study(store, f"{n_known}_cold", n_known, seed=1)
            add_study(store, f"{n_known}_warm", n_known, seed=1)
        for seed in (2, 3):
            add_study(store, f"source_{seed}_warm", 200, seed)
        for name in (f"{n_known}_{kind}" for n_known in LARGE_KNOWN for kind in ("cold", "warm")):
            service = CatalogStudyService(store.catalog, find_prior_studies=_two_sources(store, name))
            first, _ = timed_suggestion(service, name)
            taken = []
            for _ in range(SERVICE_ROUNDS):
                milliseconds, record = timed_suggestion(service, name)
                taken.append(milliseconds)
                service.complete(name, record.trial.trial_id, objective(record.trial.configuration))
            summary = {"first": first, "median": statistics.median(taken), "longest": max(taken)}
            figures |= {f"service_{name}_{what}_ms": round(value, 1) for what, value in summary.items()}
    return figures


def _two_sources(store: Store, name: str) -> FindPriorStudies:
    """Return nothing for a cold study to start from, and two studies of 200 trials for a warm one."""
    if name.endswith("cold"):
        return no_prior_studies
    stored = StoredPriorStudies(store)
    return lambda study: PriorStudies(tuple(source for source in stored(study).sources if "source" in source.name))


def main() -> None:
    figures: dict[str, object] = {}
    print(f"{'space':<14} {'tuner':<18}" + "".join(f"{f'{n_known} known':>12}" for n_known in KNOWN))
    for title, space in SPACES.items():
        for make in TUNERS:
            row = {n_known: seconds_to_suggest(make(space, 0), space, n_known) for n_known in KNOWN}
            print(f"{title:<14} {make.name:<18}" + "".join(f"{seconds * 1e3:9.1f} ms" for seconds in row.values()))
            name = title.replace(" ", "_").replace("-", "_")
            figures |= {f"{name}_{make.name}_{n_known}_ms": round(seconds * 1e3, 2) for n_known, seconds in row.items()}
    loop = statistics.median(fixed_loop_ms() for _ in range(ROUNDS))
    service = through_service()
    print("\n".join(f"{name:<34} {value:9.1f} {value / loop:8.2f} loops" for name, value in service.items()))
    figures |= service | {"fixed_loop_ms": round(loop, 1)}
    machine = f"{platform.machine()}, Python {platform.python_version()}"
    print(json.dumps(figures | {"rounds": ROUNDS, "machine": machine}))


if __name__ == "__main__":
    main()
