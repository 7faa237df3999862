from crosswind.data.catalog.catalog import Catalog
from crosswind.data.schema.run import Run, RunState


def test_runs_are_counted_by_system_and_job(catalog: Catalog) -> None:
    with catalog.write() as session:
        for run_id, system, job_id in (("a", "lab", "7"), ("b", "lab", "7"), ("c", "far", "7"), ("d", "lab", None)):
            session.runs.merge(Run(run_id, "bert", system, RunState.COMPLETED, job_id=job_id))
    with catalog.read() as session:
        assert session.runs.counts_by_job(["7", "8"]) == {("lab", "7"): 2, ("far", "7"): 1}
        assert session.runs.counts_by_job([]) == {}
        assert session.runs.counts_by_job(list(map(str, range(40_000)))) == {("lab", "7"): 2, ("far", "7"): 1}
