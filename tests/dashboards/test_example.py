import csv
import re
import shutil
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import urljoin

import pytest
from starlette.testclient import TestClient
from tests.dashboards.test_every_page import Outline, html_of
from tests.serving import own_client, patient_app

from crosswind.dashboards.pages.listed import LISTED
from crosswind.dashboards.pages.page import Page
from crosswind.data.store.store import Store

RIBBON = '<section class="example"'
HEAVY = {"counters"}  # seconds
ENERGY = "The lab has none, so there is no example of this page."
WITHOUT = {"energy": ENERGY, "sql": "Ask what is stored in SQL."}
TOP = "http://127.0.0.1"
IN_PLACE = [
    pytest.param(page, id=page.name, marks=[pytest.mark.thorough] if page.name in HEAVY else [])
    for page in LISTED
    if page.label and page.name not in WITHOUT
]


@pytest.fixture(scope="module")
def empty(homes: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Store]:
    with Store.open(Path(shutil.copytree(homes / "empty", tmp_path_factory.mktemp("first") / "store"))) as opened:
        yield opened


@pytest.fixture(scope="module")
def first(empty: Store) -> Iterator[TestClient]:
    """A client of a server with nothing stored."""
    with own_client(patient_app(empty), base_url=TOP) as opened:
        yield opened


def targets(html: str, address: str) -> set[str]:
    """Return where the links and forms of a page's content lead, without the ways out of the example."""
    main = html[html.index("<main") : html.index("</main>")]
    page = Outline(main.replace("</main>", ""))
    links = {link["href"] or "" for link in page.all("a")} | {form["action"] or "" for form in page.all("form")}
    data = set(re.findall(r'data-(?:part|link)="([^"]+)"', main))
    return {urljoin(TOP + address, link.replace("&amp;", "&")) for link in links | data if "example=no" not in link}


@pytest.mark.parametrize("page", IN_PLACE)
def test_a_first_visit_shows_the_example_and_the_command_that_fills_the_page(first: TestClient, page: Page) -> None:
    html = html_of(first, page.path)
    assert RIBBON in html
    assert f'<code id="copy-fill">{page.fill}</code>' in html
    assert f"{page.hint.replace(chr(39), '&#39;')}:" in html
    assert len(re.findall("<h1", html)) == 1
    for target in targets(html, page.path):
        assert target.startswith(f"{TOP}/example/"), target


@pytest.mark.parametrize("name", WITHOUT)
def test_a_page_without_an_example_says_why(first: TestClient, name: str) -> None:
    html = html_of(first, f"/{name}")
    assert RIBBON not in html
    assert WITHOUT[name] in html


def test_an_address_that_asks_for_something_is_answered_from_the_own_store(first: TestClient) -> None:
    for address in ("/runs?workload=gpt", "/?period=7d", "/runs?example=no"):
        html = html_of(first, address)
        assert RIBBON not in html
        assert "<h1>No run is stored yet.</h1>" in html
    assert RIBBON in html_of(first, "/runs?workload=")


def test_who_has_left_the_example_stays_outside_until_they_go_back(first: TestClient) -> None:
    leaving = re.findall(r'<a href="([^"]+)">Leave the example', html_of(first, "/example/runs"))
    assert [urljoin(f"{TOP}/example/runs", link) for link in leaving] == [f"{TOP}/runs?example=no"]
    html = html_of(first, "/runs?example=no")
    assert 'href="./variability?example=no"' in html
    assert '<a href="./example/runs">Back to the example</a>' in html
    run = first.get("/example/runs.json").json()["rows"][0]["run"]["run_id"]
    html = html_of(first, f"/example/runs/{run}")
    assert '<a href="../../runs?example=no">Leave the example</a>' in html


def test_the_rail_leads_to_own_pages_until_the_address_is_the_examples(first: TestClient) -> None:
    rail = re.compile(r'<header class="rail">.*?</nav>', re.DOTALL)
    for address, root in (("/links", TOP), ("/example/links", f"{TOP}/example")):
        [part] = rail.findall(html_of(first, address))
        links = {urljoin(TOP + address, link) for link in re.findall(r'href="([^"]+)"', part)}
        assert {f"{root}/", f"{root}/runs", f"{root}/predict", f"{root}/sql"} <= links


def test_the_overview_of_the_example_has_its_parts_and_no_events(first: TestClient) -> None:
    html = html_of(first, "/")
    parts = re.findall(r'data-part="([^"]+)"', html)
    assert {urljoin(TOP, part) for part in parts} >= {f"{TOP}/example/?part={name}" for name in ("weather", "gaps")}
    assert 'id="live"' not in html
    assert "v1/events" not in html
    block = html_of(first, "/example/?part=regressions")
    assert RIBBON in block
    assert 'id="part-regressions"' in block


def test_programs_get_the_example_only_where_the_address_says_so(first: TestClient) -> None:
    own, example = (first.get(f"{root}/runs.json").json() for root in ("", "/example"))
    assert (own["example"], own["rows"]) == (False, [])
    assert (example["example"], len(example["rows"])) == (True, 50)
    assert first.get("/overview.json").json()["blocks"] == []
    table = first.get("/example/runs.csv")
    assert table.headers["content-disposition"] == 'attachment; filename="crosswind-example-runs.csv"'
    assert len(list(csv.DictReader(table.text.splitlines()))) == 50
    assert not list(csv.DictReader(first.get("/runs.csv").text.splitlines()))
    report = first.get("/example/runs.html").text
    assert "data of Crosswind's lab" in report.replace("&#39;", "'")
    assert "data of Crosswind's lab" not in first.get("/runs.html").text
    assert first.get("/v1/runs").json()["runs"] == []


def test_pages_of_the_example_lead_to_pages_of_it_that_are_there(first: TestClient) -> None:
    run = first.get("/example/runs.json").json()["rows"][0]["run"]["run_id"]
    for address in ("/example/runs?limit=3", f"/example/runs/{run}", f"/example/compare?a={run}", "/example/studies"):
        html = html_of(first, address)
        assert RIBBON in html
        assert Outline(html).open == []
        assert "/v1/" not in html
        assert '<form class="login"' not in html, "nothing of it can be changed"
        leading = targets(html, address) - {urljoin(TOP + address, "#main")}
        assert {target for target in leading if not target.startswith(f"{TOP}/example/")} == set()
        for target in sorted(leading)[:4]:
            assert first.get(target).status_code == 200, target
    assert "437" in html_of(first, "/example/sql?query=select+count(*)+from+runs")
    assert first.get("/example/runs/nope").status_code == first.get("/example/nope").status_code == 404
    assert first.post("/example/studies").status_code == 405


def test_a_store_with_enough_never_shows_the_example(lab: Store) -> None:
    with own_client(patient_app(lab), base_url=TOP) as client:
        for address in ("/", "/runs", "/runs/r3", "/compare", "/predict", "/variability", "/sql"):
            html = html_of(client, address)
            assert RIBBON not in html, address
            assert "example/" not in html, address


def test_nothing_of_the_example_comes_into_the_own_store(first: TestClient, empty: Store) -> None:
    html_of(first, "/runs")
    with empty.catalog.read() as session:
        assert session.runs.count() == 0
        assert session.studies.all() == []
    assert not list((empty.home / "lake").glob("set=*"))


def test_the_ribbon_says_what_the_own_page_would(lab: Store) -> None:
    with own_client(patient_app(lab), base_url=TOP) as client:
        html = html_of(client, "/interference")
    assert RIBBON in html
    assert "Your data: No neighbour can be judged yet: 0 runs had neighbours." in html


def test_a_program_gets_its_own_page_in_html_too(first: TestClient) -> None:
    html = first.get("/counters").text
    assert RIBBON not in html
    assert "<h1>No run is stored yet.</h1>" in html
