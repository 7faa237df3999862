"""`crosswind lake`: sizes and holes of the sets, and each damaged file by its name."""

import json
from dataclasses import replace
from pathlib import Path

import pytest

from crosswind.cli.main import main
from crosswind.data.lake.compaction import compact
from crosswind.data.lake.lake import Lake, to_table
from crosswind.data.lake.parts import held, manifest_of
from crosswind.data.lake.verification import verify
from crosswind.data.schema.metric import Column, MetricSet, with_node_keys
from crosswind.data.schema.steps import STEP
from crosswind.data.store.store import Store

HOUR = 3_600_000_000_000
LATER = 400 * 24 * HOUR
TIMES = (0, 1, 3 * HOUR, 30 * HOUR)  # ns: three rows of one day, and one of the next


@pytest.fixture
def lake(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Lake:
    """Four parts, in the store that the command finds."""
    monkeypatch.setenv("CROSSWIND_HOME", str(tmp_path))
    with Store.open(tmp_path) as store:
        for number, time_ns in enumerate(TIMES):
            store.lake.append(f"p{number}", to_table(STEP, {"ts_ns": [time_ns], "run_id": ["r"]}))
        return store.lake


def test_the_status_has_sizes_times_and_holes(lake: Lake, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["lake", "status", "--json"]) == 0
    answer = json.loads(capsys.readouterr().out)
    [of_steps] = answer["sets"]
    assert of_steps.pop("bytes") == sum(path.stat().st_size for path in lake.parts("step"))
    assert of_steps == {
        "name": "step",
        "days": 2,
        "files": 4,
        "small_files": 3,
        "rows": 4,
        "oldest_ns": 0,
        "newest_ns": 30 * HOUR,
        "holes": [[1, 3 * HOUR], [3 * HOUR, 30 * HOUR]],
    }
    assert main(["lake", "status"]) == 0
    assert capsys.readouterr().out.splitlines()[-2].split()[:5] == ["step", "2", "4", "3", "4"]


def test_the_status_of_an_empty_lake_says_so(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("CROSSWIND_HOME", str(tmp_path))
    assert main(["lake", "status"]) == 0
    assert capsys.readouterr().out == "The lake holds no rows.\n"


def test_a_look_changes_nothing(lake: Lake) -> None:
    [day, _] = lake.days("step")
    lone = day / "_held-part-c0_1_0123456789abcdef.json"  # of a compaction that was killed, which the next one removes
    lone.write_text("{}")
    before = sorted(lake.root.rglob("*"))
    assert (main(["lake", "status"]), main(["lake", "verify"])) == (0, 0)
    assert sorted(lake.root.rglob("*")) == before
    compact(lake, now_ns=LATER, settle_seconds=-1)
    assert not lone.exists()


def test_a_whole_lake_is_whole_before_and_after_compaction(lake: Lake, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["lake", "verify"]) == 0
    assert capsys.readouterr().out == "4 files with 4 rows are whole, 0 problems.\n"
    compact(lake, now_ns=LATER, settle_seconds=-1)
    assert main(["lake", "verify", "--json"]) == 0
    assert json.loads(capsys.readouterr().out) == {"files": 2, "rows": 4, "problems": [], "inventory": None}


def test_it_compacts_by_hand(lake: Lake, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["lake", "compact", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["files_before"] == 4


def test_a_flipped_bit_of_a_page_is_damage(lake: Lake, capsys: pytest.CaptureFixture[str]) -> None:
    compact(lake, now_ns=LATER, settle_seconds=-1)
    path = lake.parts("step")[0]
    content = bytearray(path.read_bytes())
    content[content.index(b"r", 4 + len("PAR1"))] ^= 1  # within the first pages
    path.write_bytes(content)
    assert main(["lake", "verify"]) == 1
    assert capsys.readouterr().err.startswith(f"crosswind: {path}: left as it is: ")


def test_a_cut_file_is_named_by_both_and_the_others_count(lake: Lake, capsys: pytest.CaptureFixture[str]) -> None:
    path = lake.parts("step")[1]
    path.write_bytes(path.read_bytes()[:-9])
    expected = {"status": "step     2      3      2     3", "verify": "3 files with 3 rows are whole, 1 problems."}
    for action, says in expected.items():
        assert main(["lake", action]) == 1
        output = capsys.readouterr()
        assert str(path) in output.err
        assert says in output.out


def test_a_lost_manifest_is_named(lake: Lake) -> None:
    compact(lake, now_ns=LATER, settle_seconds=-1)
    manifest = manifest_of(lake.parts("step")[0])
    manifest.write_text("{")
    [problem] = verify(Lake(lake.root)).problems
    assert str(manifest.name) in problem or str(manifest.parent) in problem


def test_rows_in_the_folder_of_another_day_are_damage(lake: Lake) -> None:
    first, *_, last = lake.parts("step")
    last.rename(first.with_name("part-moved.parquet"))
    [problem] = verify(lake).problems
    assert "expected some of date=1970-01-01" in problem


def test_an_unknown_action_is_refused(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as refused:
        main(["lake", "shrink"])
    assert refused.value.code == 2
    assert "invalid choice: 'shrink'" in capsys.readouterr().err


@pytest.mark.parametrize(
    "words", [["compact", "--dry-run"], ["verify", "--keep", "raw:forever"], ["status", "--dry-run"]]
)
def test_an_option_that_does_not_apply_is_refused_and_nothing_done(
    lake: Lake, words: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    before = lake.parts("step")
    assert main(["lake", *words]) == 2
    assert f"{words[1]}: expected with retire" in capsys.readouterr().err
    assert lake.parts("step") == before


DAY = 24 * HOUR
HEAT = with_node_keys(MetricSet("heat", "h", (Column("heat_celsius", "h", unit="Cel"),)))


@pytest.fixture
def old(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Lake:
    """Two days of samples of a node, long ago."""
    monkeypatch.setenv("CROSSWIND_HOME", str(tmp_path))
    with Store.open(tmp_path) as store:
        for day in range(2):
            times = [day * DAY + minute * HOUR // 60 for minute in range(100)]
            columns = {"ts_ns": times, "node": ["n1"] * 100, "heat_celsius": list(range(100))}
            store.lake.append(f"p{day}", to_table(HEAT, columns))
        return store.lake


def test_old_samples_are_retired_by_policy_and_the_status_says_what_would_be(
    old: Lake, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["lake", "status"]) == 0
    assert capsys.readouterr().out.endswith("Kept for ever: CROSSWIND_KEEP is not set.\n")
    assert main(["lake", "retire", "--dry-run", "--keep", "raw:7d,1h:forever"]) == 0
    said = "roll-ups of 2 days of sets; 2 days retired, with 0.0 MB of raw rows; 0 roll-ups removed.\n"
    assert capsys.readouterr().out == f"To be done: {said}"
    monkeypatch.setenv("CROSSWIND_KEEP", "raw:7d,1h:forever")
    assert main(["lake", "status", "--json"]) == 0
    due = json.loads(capsys.readouterr().out)["due"]
    assert (due.pop("retired_bytes") > 1000, due.pop("problems")) == (True, [])
    assert due == {"days": 2, "rolled_up": 2, "retired": 2, "removed": 0}
    assert main(["lake", "retire"]) == 0
    assert capsys.readouterr().out == f"Done: {said}"
    assert main(["lake", "status"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert [line.split()[:5] for line in lines[-3:-1]] == [
        ["heat", "2", "2", "0", "2"],
        ["rollup_3600s_heat", "2", "2", "0", "4"],
    ]
    assert lines[-1].startswith("Due by policy: roll-ups of 0 days of sets; 0 days retired")


def test_a_set_with_a_damaged_manifest_is_named_and_the_others_are_retired(
    old: Lake, capsys: pytest.CaptureFixture[str]
) -> None:
    compact(old, now_ns=LATER, settle_seconds=-1)
    manifest = manifest_of(old.parts("heat")[0])
    old.append("late", to_table(HEAT, {"ts_ns": [5], "node": ["n2"], "heat_celsius": [1]}))
    cold = replace(HEAT, name="cold")
    old.append("p", to_table(cold, {"ts_ns": [5], "node": ["n1"], "heat_celsius": [1]}))
    manifest.write_text("{")
    held.cache_clear()
    for action in (["status"], ["retire", "--dry-run"], ["retire"]):
        assert main(["lake", *action, "--keep", "raw:7d,1h:forever"]) == 1
        output = capsys.readouterr()
        assert f"set heat: left as it is: {manifest}: expected what part-c" in output.err
    assert output.out.startswith("Done: roll-ups of 1 days of sets; 1 days retired")


def test_without_a_policy_or_with_a_wrong_one_nothing_is_retired(
    old: Lake, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["lake", "retire"]) == 2
    assert "CROSSWIND_KEEP is not set: expected a policy such as raw:30d,1m:1y,1h:forever" in capsys.readouterr().err
    monkeypatch.setenv("CROSSWIND_KEEP", "raw:30d")
    assert main(["lake", "retire"]) == 2
    assert "CROSSWIND_KEEP: 'raw:30d', expected a roll-up that is kept longer than raw" in capsys.readouterr().err
    assert len(list(old.root.glob("set=heat/date=*/part-p*"))) == 2
