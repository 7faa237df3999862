from dataclasses import replace

from crosswind.api.remembered import RememberedExplanations
from crosswind.data.store import Store
from crosswind.models.explain.explain import explain_runs


def test_explanations_are_those_of_the_model_until_something_is_ingested(store: Store) -> None:
    with store.catalog.read() as session:
        runs = session.runs.find(limit=3)
    remembered = RememberedExplanations()
    first = remembered(store, runs)
    assert first == explain_runs(store, runs)
    again = remembered(store, runs[:2])
    assert [again[run.run_id] is first[run.run_id] for run in runs[:2]] == [True, True]
    with store.catalog.write() as session:
        session.add_batch("later", "agent", row_count=1, skipped=0)
    fresh = remembered(store, runs)
    assert fresh == first
    assert not [run for run in runs if fresh[run.run_id] is first[run.run_id]]


def test_a_new_run_changes_what_its_cohort_is_compared_with(store: Store) -> None:
    with store.catalog.read() as session:
        run = session.runs.get("r0")
    remembered = RememberedExplanations()
    before = remembered(store, [run])["r0"]
    with store.catalog.write() as session:
        session.runs.merge(replace(run, run_id="r9"))
    after = remembered(store, [run])["r0"]
    assert after == before
    assert after is not before
