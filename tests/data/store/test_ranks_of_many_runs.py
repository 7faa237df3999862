from crosswind.data.catalog.catalog import Catalog
from crosswind.data.catalog.runs import ANY_RUN, RunFilter
from crosswind.data.schema.occupancy import Placement, Source
from crosswind.data.schema.run import Rank, Run, RunState, cohort_digest


def fill(catalog: Catalog) -> None:
    with catalog.write() as session:
        for number, run_id in enumerate(("a", "b", "c")):
            identity = (run_id, "bert", "lab" if number else "far", RunState.COMPLETED, 2)
            session.runs.merge(Run(*identity, nodes=("n1",), started_ns=number, ended_ns=10, tags={"x": "y"}))
            for rank in (0, 1):
                session.ranks.merge(Rank(run_id, rank, f"n{rank}", 7, number))
                placed = Placement(f"n{rank}", 7, number, f"n{rank}", Source.PROBE, run_id=run_id, rank=rank)
                session.places.merge(placed)
        session.places.merge(Placement("n0", 7, 0, "n0", Source.PROBE, run_id="a", rank=0, gpus=("G1", "G2")))
        session.ranks.merge(Rank("c", 1, "n5", 8, 3))  # another process came to be the same rank


def test_nodes_of_many_runs_ranks(catalog: Catalog) -> None:
    fill(catalog)
    many = ["c", "a", *map(str, range(40_000))]
    with catalog.read() as session:
        assert sorted(zip(*session.ranks.nodes_of(many), strict=True)) == [
            ("a", 0, "n0"),
            ("a", 1, "n1"),
            ("c", 0, "n0"),
            ("c", 1, "n5"),
        ]
        assert session.ranks.nodes_of([]) == ([], [], [])


def test_gpus_of_many_runs_ranks_are_those_known(catalog: Catalog) -> None:
    fill(catalog)
    with catalog.read() as session:
        assert session.places.gpus_of_ranks(["a", "b", *map(str, range(2000))]) == {("a", 0): ("G1", "G2")}


def test_outlines_are_the_newest_runs_without_their_facts(catalog: Catalog) -> None:
    fill(catalog)
    with catalog.read() as session:
        [older, newer] = session.runs.outlines(ANY_RUN, limit=2)
        assert [outline.run_id for outline in session.runs.outlines(RunFilter(system="far"), limit=9)] == ["a"]
    assert older == Run("b", "bert", "lab", RunState.COMPLETED, 2, started_ns=1, ended_ns=10)
    assert newer.run_id == "c"


def test_runs_that_completed_are_placed_by_cohort_and_nodes(catalog: Catalog) -> None:
    fill(catalog)
    with catalog.write() as session:
        session.runs.merge(Run("d", "bert", "lab", RunState.FAILED, 2, started_ns=3, ended_ns=9, nodes=("n0",)))
        cohort = cohort_digest(session.runs.get("b"))
        assert session.runs.placed(ANY_RUN, limit=3) == [("b", cohort, ["n1"]), ("c", cohort, ["n1"])]
        assert [run_id for run_id, *_ in session.runs.placed(RunFilter(system="far"), limit=9)] == ["a"]
