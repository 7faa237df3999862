import json
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from crosswind.cli.main import main
from crosswind.cli.text.sparkline import sparkline
from crosswind.data.lake.lake import to_table
from crosswind.data.schema.metric import Column, Kind, MetricSet, with_node_keys
from crosswind.data.store.store import Store

SECOND = 1_000_000_000
METER = with_node_keys(MetricSet("meter", "bytes", (Column("sent_bytes_total", "sent", Kind.COUNTER, unit="bytes"),)))
Ask = Callable[..., str]


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("CROSSWIND_HOME", str(tmp_path / "home"))
    monkeypatch.delenv("CROSSWIND_DATABASE", raising=False)
    monkeypatch.delenv("CROSSWIND_SERVER", raising=False)
    return tmp_path / "home"


@pytest.fixture
def ask(home: Path, capsys: pytest.CaptureFixture[str]) -> Ask:
    def ask(*words: str, code: int = 0) -> str:
        assert main(list(words)) == code
        said = capsys.readouterr()
        return said.out + said.err

    return ask


def sample(home: Path) -> None:
    """Store 60 sweeps of two nodes in the last ten minutes, each of 1000 bytes in 10 s."""
    now_ns = time.time_ns()
    for node in ("n1", "n2"):
        times = [now_ns - (60 - number) * 10 * SECOND for number in range(60)]
        keys = {"ts_ns": times, "mono_ns": times, "node": [node] * 60, "device": ["d0"] * 60, "boot_id": ["b"] * 60}
        table = to_table(METER, {**keys, "sent_bytes_total": [number * 1000 for number in range(60)]})
        with Store.open(home) as store:
            store.lake.append(node, table)


def test_a_series_is_a_line_with_its_course(ask: Ask, home: Path) -> None:
    sample(home)
    heading, line, between, times = ask(
        "series", "meter.sent_bytes_total", "--node", "n1", "--from", "-1h"
    ).splitlines()
    assert heading.split() == ["series", "lowest", "mean", "highest", "last", "course"]
    assert line.split()[:7] == ["n1", "d0", "meter.sent_bytes_total", "rate", "100", "B/s", "100"]
    course = line.partition("100 B/s")[2].rpartition("B/s")[2]
    assert 10 <= course.count("▁") <= 11  # of the last ten of sixty minutes
    assert len(course) >= 60
    assert (between, "one value in 60.0 s" in times) == ("", True)


def test_the_same_comes_as_json(ask: Ask, home: Path) -> None:
    sample(home)
    words = ("--by", "none", "--statistic", "sum", "--from", "-1h", "--to", "now", "--json")
    answer = json.loads(ask("series", "meter.sent_bytes_total", *words))
    [one] = answer["series"]
    assert sum(value or 0 for value in one["values"]) == 2 * 59 * 1000
    assert None in one["values"]


def test_without_a_metric_those_that_are_stored_are_listed(ask: Ask, home: Path) -> None:
    assert ask("series").startswith("No samples yet: run crosswind agent")
    sample(home)
    heading, line = ask("series").splitlines()
    assert heading.split() == ["metric", "kind", "unit", "by"]
    assert line.split() == ["meter.sent_bytes_total", "counter", "bytes", "node,", "device", "sent"]


def test_what_is_not_there_is_said_with_what_to_do(ask: Ask, home: Path) -> None:
    sample(home)
    assert "--from -7d looks further back" in ask("series", "meter.sent_bytes_total", "--node", "n9")
    assert "did you mean meter.sent_bytes_total?" in ask("series", "meter.sent_bytes", code=2)
    assert "--from 'noon': expected a time such as" in ask("series", "meter.sent_bytes_total", "--from", "noon", code=2)


def test_a_course_has_blanks_where_values_are_missing() -> None:
    assert sparkline([0.0, None, 7.0, 3.5]) == "▁ █▅"
    assert sparkline([None, None]) == "  "
    assert sparkline([2.0, 2.0]) == "▁▁"
