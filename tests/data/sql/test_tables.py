"""Tables by role: whose rows they hold, and which are not there at all."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.api.two_users import ANN, COMMON, MARK, NOW_NS, RANKS, RUNS, STEPS, fill

from crosswind.client.local import Local
from crosswind.data.lake.lake import to_table
from crosswind.data.schema.access import ALL_ROWS, RowRule
from crosswind.data.schema.errors import InvalidInputError
from crosswind.data.schema.metric import Column, Kind, MetricSet, with_node_keys
from crosswind.data.schema.run import Run, RunState
from crosswind.data.sql.tables import OF_OTHERS
from crosswind.data.store.store import Store

NODES = ["ann-node0", COMMON, f"{MARK}-node0"]
GAUGE = Column("load1_ratio", "over one minute", dtype="float64")
PID = Column("pid", "process", Kind.KEY)


def sampled(name: str, *columns: Column) -> MetricSet:
    return with_node_keys(MetricSet(name, "A set of a test.", columns))


SETS = (
    *(sampled(name, GAUGE) for name in ("load_average", *sorted(OF_OTHERS))),
    sampled("of_processes", PID),
    MetricSet("of_nobody", "A set of a test.", (Column("ts_ns", "time", Kind.KEY, unit="ns"), GAUGE)),
)


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Store]:
    with Store.open(tmp_path_factory.mktemp("tables") / "store") as opened:
        fill(opened)
        for one in SETS:
            of_nodes = {} if one.name == "of_nobody" else {"node": NODES}
            opened.lake.append(f"test-{one.name}", to_table(one, {"ts_ns": [NOW_NS] * 3, **of_nodes}))
        yield opened


def client(store: Store, rule: RowRule) -> Local:
    return Local(store.seen_by(rule))


def names(store: Store, rule: RowRule) -> set[str]:
    return {table.name for table in client(store, rule).sql.tables().tables}


def test_sets_that_name_what_others_ran_are_for_those_who_see_all(store: Store) -> None:
    hidden = {*OF_OTHERS, "of_processes", "of_nobody"}
    assert names(store, ALL_ROWS) - names(store, ANN.row_rule) == hidden
    for name in (*sorted(hidden)[:2], "job"):
        with pytest.raises(InvalidInputError, match=rf"table '{name}' is unknown"):
            client(store, ANN.row_rule).sql(f"select * from {name}")


def test_each_table_holds_the_rows_of_whoever_asks(store: Store) -> None:
    runs, steps = RUNS + 2, RUNS * STEPS * RANKS
    counted = {
        "runs": runs,
        "ranks": runs * RANKS,
        "jobs": RUNS,
        "step": steps,
        "studies": 1,
        "trials": 3,
        "reports": 1,
    }
    query = f"select {', '.join(f'(select count(*) from {name}) as {name}' for name in counted)}"
    [own] = client(store, ANN.row_rule).sql(query).rows
    [every] = client(store, ALL_ROWS).sql(query).rows
    assert own == tuple(counted.values())
    assert every == tuple(2 * count for count in counted.values())


def test_samples_are_of_the_nodes_that_ones_runs_and_jobs_had(store: Store) -> None:
    query = "select node from load_average order by node"
    assert client(store, ANN.row_rule).sql(query).rows == (("ann-node0",), (COMMON,))
    assert len(client(store, ALL_ROWS).sql(query).rows) == 3


def test_jobs_name_their_users_and_nobody_sees_pseudonyms_of_others(store: Store) -> None:
    query = "select distinct user from jobs order by user"
    assert client(store, ANN.row_rule).sql(query).rows == (("ann",),)
    assert client(store, ALL_ROWS).sql(query).rows == (("ann",), (MARK,))
    assert client(store, ALL_ROWS).sql("select count(*) from jobs where user = 'ann'").rows == ((RUNS,),)


def test_a_run_of_another_user_has_no_rows_whichever_way_it_is_named(store: Store) -> None:
    asked = client(store, ANN.row_rule).sql
    for where in (f"run_id = '{MARK}-run3'", f"run_id in ('{MARK}-run3', 'x')", "starts_with(run_id, 'bob')"):
        for table in ("runs", "ranks", "verdicts", "step"):
            assert asked(f"select count(*) from {table} where {where}").rows == ((0,),), (table, where)
    assert asked("select count(*) from step where run_id = ?", [f"{MARK}-run3"]).rows == ((0,),)


def test_a_shared_run_is_there_with_its_steps(store: Store) -> None:
    Local(store).own.share_run(f"{MARK}-run5", shared=True)
    asked = client(store, ANN.row_rule).sql
    try:
        assert asked(f"select count(*) from step where run_id = '{MARK}-run5'").rows == ((STEPS * RANKS,),)
        assert asked(f"select shared from runs where user = '{MARK}'").rows == ((True,),)
    finally:
        Local(store).own.share_run(f"{MARK}-run5", shared=False)


def test_secrets_of_stored_commands_are_left_out(tmp_path: Path) -> None:
    with Store.open(tmp_path / "store") as own:
        with own.catalog.write() as session:
            command = ("python", "train.py", "--api-key", "abcdefgh12345678")
            session.runs.merge(Run("r1", "w", "lab", RunState.COMPLETED, command=command, started_ns=1))
        [(text,)] = Local(own).sql("select command from runs").rows
    assert text == '["python", "train.py", "--api-key", "[redacted]"]'
