from dataclasses import replace

from crosswind.data.catalog.catalog import Catalog
from crosswind.data.schema.injection import Injected

CAP = Injected("r1", "rate_cap", 100.0, "Mbit/s", "lab-1", 0, 500, 900)


def test_what_was_injected_comes_back_by_run_and_time(catalog: Catalog) -> None:
    later, other = replace(CAP, kind="cpu_hog", unit="processes", started_ns=600), replace(CAP, run_id="r0")
    with catalog.write() as session:
        for injection in (later, CAP, other, replace(CAP, run_id="r2")):
            session.injections.put(injection)
    with catalog.read() as session:
        assert session.injections.of_runs(["r1", "r0", "unknown"]) == [other, CAP, later]


def test_the_same_injection_again_changes_nothing(catalog: Catalog) -> None:
    for _ in range(2):
        with catalog.write() as session:
            session.injections.put(CAP)
    with catalog.read() as session:
        assert session.injections.of_runs(["r1"]) == [CAP]
