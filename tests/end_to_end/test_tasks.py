"""Answers that a reader comes for, from the Overview with two clicks at most, in a real browser."""

from collections.abc import Iterator
from typing import Any
from urllib.parse import parse_qs, urlsplit

import pytest
from tests.end_to_end.stores import LIVE, STUDY
from tests.end_to_end.visits import Contexts, Visit, json_of

from crosswind.dashboards import wording

CLICKS = 2


class Reader:
    """Somebody at the Overview, who has so many clicks."""

    def __init__(self, visit: Visit) -> None:
        self.visit, self.page, self.clicks = visit, visit.page, 0
        visit.go("/")
        visit.is_drawn()

    def click(self, name: str, *, within: str = "body") -> None:
        """Click a link that is shown under this name, and wait for its page."""
        self.clicks += 1
        link = self.page.locator(within).get_by_role("link", name=name).first
        assert link.is_visible()
        link.click()
        self.visit.is_drawn()

    def reads(self, *words: str) -> None:
        """Find these words on the page that at most two clicks led to."""
        assert self.clicks <= CLICKS
        text = " ".join(self.page.locator("main").inner_text().split())
        assert [one for one in words if " ".join(one.split()) not in text] == []
        assert self.visit.problems == []


@pytest.fixture
def top(sample_top: str) -> str:
    return sample_top


@pytest.fixture
def reader(contexts: Contexts, top: str) -> Iterator[Reader]:
    reader = Reader(contexts.visit(top))
    yield reader
    reader.visit.close()


def slowest(top: str) -> Any:
    return json_of(top, "/runs.json?verdict=slow&sort=-excess&limit=1")["rows"][0]


def test_why_the_slowest_run_was_slow_and_what_to_do(reader: Reader, top: str) -> None:
    run_id = slowest(top)["run"]["run_id"]
    explanation = json_of(top, f"/v1/runs/{run_id}/explanation")
    reader.click("its slow runs")
    reader.click(run_id, within="#runs")
    headline, rest = wording.headline(explanation["sentence"])
    reader.reads(headline, rest, explanation["next_action"])
    assert explanation["cause"] == "cpu_contention"


def test_which_node_is_bad(reader: Reader, top: str) -> None:
    [bad] = [peer for peer in json_of(top, "/v1/stragglers")["ranked"] if peer["named"]]
    reader.click(bad["name"], within="#part-stragglers")
    reader.reads(f"Node {bad['name']} takes {wording.times(bad['ratio'])}", f"--exclude={bad['name']}")


def test_what_the_next_run_will_take(reader: Reader, top: str) -> None:
    reader.click("Predict", within=".rail")
    reader.click("nanogpt-124m on lab")
    like = parse_qs(urlsplit(reader.page.url).query)["like"][0]
    answer = json_of(top, "/v1/predictions", {"like": like, "outcome": "run_seconds"})
    median, late = ([one["seconds"] for one in answer["quantiles"] if one["level"] == level] for level in (0.5, 0.9))
    reader.reads(f"takes {wording.seconds(*median)}", f"at most {wording.seconds(*late)}", "#SBATCH --time=")


def test_two_runs_are_compared(reader: Reader, top: str) -> None:
    run_id = slowest(top)["run"]["run_id"]
    reader.click("Compare two runs")
    reader.click(f"Compare {run_id} with the run nearest in time")
    other = reader.page.get_by_label("B", exact=True).input_value()
    answer = json_of(top, f"/v1/runs/{run_id}/comparison?with={other}")
    assert answer["slower"] == run_id
    largest = max(answer["shares"], key=lambda share: share["seconds"]["value"])
    reader.reads("A took ", run_id, other, largest["evidence"])


def test_whether_tuning_is_done(reader: Reader, top: str) -> None:
    reader.click("Tuning", within=".rail")
    study = json_of(top, f"/studies.json?study={STUDY}")
    assert study["done"].startswith("Done")
    best = min(trial["value"] for trial in study["rows"])
    reader.reads(study["done"], wording.seconds(best))


def test_where_the_joules_go(reader: Reader, top: str) -> None:
    reader.click("Fleet", within=".rail")
    reader.click("Energy", within=".tabs")
    workloads = json_of(top, "/energy.json")["workloads"]
    most = max(workloads, key=lambda one: one["measured_joules"] or 0)
    reader.reads(most["workload"], wording.quantity(most["measured_joules"], "J"))


def test_what_is_running(reader: Reader, top: str) -> None:
    runs = json_of(top, "/v1/runs?state=running")["runs"]
    assert [run["run_id"] for run in runs] == [LIVE]
    block = reader.page.locator("#part-running")
    assert block.get_by_role("link", name=LIVE).is_visible()
    assert block.get_by_role("cell", name="%").is_visible()
    reader.reads("1 run is in progress.", LIVE)


def test_where_data_is_missing(reader: Reader, top: str) -> None:
    reader.click("Data health", within="#part-gaps")
    silent = [row["health"]["node"] for row in json_of(top, "/data.json")["rows"] if row["is_silent"]]
    assert silent == ["n1"]
    reader.reads(f"sent nothing in the last hour: {silent[0]}.")
