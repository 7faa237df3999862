"""Maps of tables: what is wrong with one is named with its field, value and expectation."""

from pathlib import Path

import pytest
from tests.ingest.readers.tables.reading import map_of

from crosswind.data.schema.errors import MalformedError
from crosswind.ingest.readers.tables.table_map import TableMap

RUNS = "table: runs\nworkload: bench\nseconds: t\n"


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("workload: a", "map.yaml: table is ''; expected one of: runs, steps, operations, trials"),
        ("table: run", "table is 'run'; did you mean runs. expected one of"),
        (f"{RUNS}second: x", "'second' is no field of runs; did you mean seconds"),
        (f"{RUNS}energi: x", "did you mean energy"),
        (
            f"{RUNS}energy: {{column: e, unit: kwh}}",
            "energy: unit is 'kwh'; did you mean kWh. expected one of: J, kJ",
        ),
        (
            f"{RUNS}end: {{column: e, unit: fortnight}}\nstart: s",
            "end: unit is 'fortnight'; expected one of: s, ns, us",
        ),
        (f"{RUNS}ranks: {{column: n, units: s}}", "ranks: 'units' is not known; expected one of: column"),
        (f"{RUNS}ranks: 8", r"ranks is 8; expected a column, \{column: NAME\}, or \{value: THE SAME"),
        (f"{RUNS}ranks: [a, b]", r"ranks is \['a', 'b'\]; expected a column"),
        (f"{RUNS}tags: owner", r"tags is 'owner'; expected a list of columns or patterns such as hp_\*"),
        (f"{RUNS}state: {{column: s, done: x}}", "state: 'done' is not known; expected one of: column, completed"),
        (f"{RUNS}state: {{column: s, failed: []}}", r"state: failed is \[\]; expected a word of the table"),
        (f"{RUNS}end: e", "end without start; expected both, or seconds"),
        (f"{RUNS}direction: up", "direction is 'up'; expected one of: minimise, maximise"),
        (f"{RUNS}delimiter: '||'", r"delimiter is '\|\|'; expected one character"),
        ("table: runs\nworkload: a", "seconds is missing; expected it, end or step_seconds"),
        ("table: steps\nrank: r\nseconds: s", "step is missing; expected the column that holds it in a table of steps"),
        (
            "table: trials\nobjective: 'time (ms)'\nparameters: [a]",
            r"objective is called 'time \(ms\)'; expected a name",
        ),
    ],
)
def test_what_is_wrong_is_named(text: str, reason: str) -> None:
    with pytest.raises(MalformedError, match=reason):
        map_of(text)


def test_a_map_that_is_no_yaml_is_named(tmp_path: Path) -> None:
    (tmp_path / "map.yaml").write_text("table: [runs\n")
    with pytest.raises(MalformedError, match=r"map\.yaml: not the YAML that was expected"):
        TableMap.read(tmp_path / "map.yaml")


def test_a_column_that_is_spelled_nearly_so_is_suggested() -> None:
    with pytest.raises(MalformedError, match=r"seconds: runs\.csv has no column 't'; its columns: bench, ttt_min"):
        map_of(RUNS).bound(["bench", "ttt_min"], "runs.csv")
    with pytest.raises(MalformedError, match="has no column 'ttt_mins'; did you mean 'ttt_min'"):
        map_of("table: runs\nworkload: bench\nseconds: ttt_mins").bound(["bench", "ttt_min"], "runs.csv")
    with pytest.raises(
        MalformedError, match=r"configuration: batch: runs\.csv has no column 'bach'; did you mean 'batch'"
    ):
        map_of(f"{RUNS}configuration: {{batch: bach}}").bound(["bench", "t", "batch"], "runs.csv")


def test_a_pattern_stands_for_the_columns_that_it_matches() -> None:
    bound = map_of(f"{RUNS}configuration: ['hp_*', bs]").bound(["bench", "t", "hp_a", "hp_b", "bs"], "runs.csv")
    assert list(bound.groups["configuration"]) == ["hp_a", "hp_b", "bs"]
    with pytest.raises(MalformedError, match=r"configuration: no column of runs\.csv matches 'hp_\*'"):
        map_of(f"{RUNS}configuration: ['hp_*']").bound(["bench", "t"], "runs.csv")
