import os
import time
from pathlib import Path

import pytest
from tests.waiting import until

from crosswind.api.housekeeping import _Retention, housekeeping
from crosswind.api.settings import ServerSettings
from crosswind.api.thread_beside import Ending
from crosswind.data.lake.lake import to_table
from crosswind.data.lake.locks import COMPACTING, alone
from crosswind.data.schema.keeping import KeepPolicy
from crosswind.data.schema.metric import Column, MetricSet, with_node_keys
from crosswind.data.schema.steps import STEP
from crosswind.data.store.store import Store

HOUR_SECONDS = 3600


def put(store: Store) -> None:
    for number in range(4):
        for path in store.lake.append(f"p{number}", to_table(STEP, {"ts_ns": [number], "run_id": ["r"]})):
            long_ago = time.time() - HOUR_SECONDS
            os.utime(path, (long_ago, long_ago))


def test_many_files_become_few_while_a_server_serves(tmp_path: Path) -> None:
    with Store.open(tmp_path) as store:
        put(store)
        with housekeeping(store, pause_seconds=0.01):
            until(lambda: len(store.lake.parts("step")) == 1)
        assert len(store.lake.parts("step")) == 1
        assert store.lake.frame("select count(*) as rows from step")["rows"].tolist() == [4]


def test_a_server_that_is_restarted_before_a_pause_is_over_compacts_all_the_same(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("crosswind.api.housekeeping.FIRST_SECONDS", 0.01)
    monkeypatch.setattr("crosswind.api.housekeeping.LOOK_SECONDS", 0.01)
    with Store.open(tmp_path) as store:
        put(store)
        with housekeeping(store, pause_seconds=3600):
            until(lambda: len(store.lake.parts("step")) == 1)
        assert len(store.lake.parts("step")) == 1


def test_what_is_wrong_is_logged_once(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    with Store.open(tmp_path) as store:
        put(store)
        bad = store.lake.parts("step")[0]
        bad.write_bytes(b"PAR1 torn")
        os.utime(bad, (0, 0))
        with housekeeping(store, pause_seconds=0.01):
            until(lambda: bool(caplog.messages))
            time.sleep(0.2)
    [message] = caplog.messages
    assert message.startswith(f"{bad}: left as it is: ")


def test_that_another_server_does_it_is_nothing_to_log(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    with Store.open(tmp_path) as store:
        put(store)
        with alone(store.lake.root / COMPACTING), housekeeping(store, pause_seconds=0.01):
            time.sleep(0.3)
        assert len(store.lake.parts("step")) == 4
    assert caplog.messages == []


def put_heat(store: Store) -> None:
    heat = with_node_keys(MetricSet("heat", "h", (Column("heat_celsius", "h"),)))
    store.lake.append("p", to_table(heat, {"ts_ns": [1, 2], "node": ["n", "n"], "heat_celsius": [1, 3]}))


def test_a_policy_whose_work_takes_long_goes_on_after_the_next_compaction(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with Store.open(tmp_path) as store:
        put_heat(store)
        retention = _Retention(store, KeepPolicy.of("raw:1d,1h:forever"))
        for seconds, sets in ((-1.0, 1), (60.0, 2)):
            monkeypatch.setattr("crosswind.api.housekeeping.ROUND_SECONDS", seconds)
            assert retention.apply(Ending()) == []
            assert len(store.lake.storage.sets()) == sets
        assert retention.due > time.monotonic()


def test_old_samples_are_retired_where_a_policy_says_so(tmp_path: Path) -> None:
    with Store.open(tmp_path) as store:
        put_heat(store)
        with housekeeping(store, pause_seconds=0.01, settings=ServerSettings(kept=KeepPolicy.of("raw:1d,1h:forever"))):
            until(lambda: store.lake.parts("heat")[0].name.endswith("-last.parquet"))
        assert store.lake.frame("select count(*) as rows from heat")["rows"].tolist() == [1]
        assert store.lake.storage.sets() == ["heat", "rollup_3600s_heat"]
