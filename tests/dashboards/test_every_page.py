import csv
import json
import re
import shutil
from collections.abc import Callable, Iterable, Iterator
from functools import cache, partial
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import parse_qsl, urljoin, urlsplit

import pytest
from starlette.testclient import TestClient
from tests.serving import own_client, patient_app
from tests.traced_run import store_traces

from crosswind.api.settings import ServerSettings
from crosswind.dashboards.pages import render_error
from crosswind.dashboards.pages.listed import LISTED
from crosswind.dashboards.pages.overview.parts import PARTS
from crosswind.dashboards.pages.page import stem_of
from crosswind.data.schema.run import Run, RunState, cohort_digest
from crosswind.data.store.store import Store
from crosswind.ingest.ship.zstd import zstd_module

Record = Callable[..., None]
PageAt = Callable[[str], str]
SCRIPT = "script=%23SBATCH+-N+1+-n+2%0Asrun+python+nanogpt.py+--batch-size+8"
LAB_COHORT = cohort_digest(Run("any", "nanogpt", "lab", RunState.COMPLETED, 2, {"batch_size": 8}))
PAGES = {
    "overview": ["/", "/?part=all", "/?system=none&period=365d", *(f"/?part={part}&system=lab" for part in PARTS)],
    "runs": ["/runs", "/runs?workload=nanogpt&sort=-excess", "/runs?q=zzz", "/runs?verdict=slow", "/runs?limit=2"],
    "run": ["/runs/r3", "/runs/lost", "/runs/live", "/runs/r3?from_step=5&to_step=9", "/runs/r3?from_step=99"],
    "trace": ["/runs/r3/trace", "/runs/lost/trace"],
    "compare": ["/compare", "/compare?a=r3", "/compare?run=r3&run=r1", "/compare?a=lost", "/compare?a=r3&b=lost"],
    "predict": [
        "/predict",
        "/predict?like=r3&steps=100&price=2&limit=1-0",
        "/predict?workload=none&ranks=x",
        f"/predict?{SCRIPT}",
    ],
    "variability": ["/variability", "/variability?workload=bert&sort=lost", "/variability?workload=none"],
    "selection": [f"/selection?cohort={LAB_COHORT}&slower=1.2", f"/selection?cohort={LAB_COHORT}&runs=none"],
    "counters": ["/counters?example=no", "/counters?show=all&workload=nanogpt", "/counters?workload=none"],
    "interference": ["/interference?example=no", "/interference?system=none"],
    "regressions": ["/regressions", "/regressions?workload=none&system=lab"],
    "stragglers": ["/stragglers", "/stragglers?kind=node&node=a", "/stragglers?workload=none"],
    "checks": ["/checks?example=no", "/checks?system=none"],
    "links": ["/links?example=no", "/links?period=30d"],
    "energy": ["/energy", "/energy?workload=none", "/energy?period=365d"],
    "data": ["/data", "/data?period=1d"],
    "studies": ["/studies?example=no"],
    "models": ["/models?example=no"],
    "sql": [
        "/sql",
        "/sql?query=select+*+from+runs&limit=3",
        "/sql?query=select+nothing",
        "/sql?query=select+1+where+false",
    ],
}
ADDRESSES = [address for addresses in PAGES.values() for address in addresses]
HOSTILE = "<script>alert(1)</script>\"'><img src=x onerror=alert(1)>{{7*191}}</script>"
TOP = {"overview": "/?part=all", "trace": "/runs/r3/trace"}  # addresses of pages whose name is not their path
REFUSED = {"/selection": 422, "/runs/nope": 404}
VOID = {"meta", "link", "input", "path", "circle", "br", "img", "rect"}


class Outline(HTMLParser):
    """The elements of a page, with the text of scripts."""

    def __init__(self, html: str) -> None:
        super().__init__()
        self.elements: list[tuple[str, dict[str, str | None]]] = []
        self.scripts: list[tuple[dict[str, str | None], str]] = []
        self.open: list[str] = []
        self.feed(html)
        self.close()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.elements.append((tag, dict(attrs)))
        if tag not in VOID:
            self.open.append(tag)
        if tag == "script":
            self.scripts.append((dict(attrs), ""))

    def handle_endtag(self, tag: str) -> None:
        assert tag in VOID or self.open.pop() == tag, f"</{tag}> closes what was not open"

    def handle_data(self, data: str) -> None:
        if self.open and self.open[-1] == "script":
            self.scripts[-1] = (self.scripts[-1][0], self.scripts[-1][1] + data)

    def all(self, tag: str) -> list[dict[str, str | None]]:
        return [attributes for name, attributes in self.elements if name == tag]


@pytest.fixture(scope="module")
def client(homes: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[TestClient]:
    """A client of the lab's store, which no page changes."""
    home = Path(shutil.copytree(homes / "lab", tmp_path_factory.mktemp("pages") / "lab"))
    with Store.open(home) as lab:
        for run_id in ("r1", "r3"):
            store_traces(lab, run_id)
    with Store.open(home) as lab, own_client(patient_app(lab), base_url="http://127.0.0.1") as opened:
        yield opened


def html_of(client: TestClient, address: str, *, status: int = 200) -> str:
    answer = client.get(address, headers={"Accept": "text/html"})
    assert answer.status_code == status
    assert answer.headers["content-type"] == "text/html; charset=utf-8"
    return answer.text


@pytest.fixture(scope="module")
def page_at(client: TestClient) -> PageAt:
    """Returns a page of the lab's store as HTML; each is rendered once."""
    return cache(partial(html_of, client))


def test_every_page_is_held_to_this_contract() -> None:
    assert list(PAGES) == [page.name for page in LISTED]


@pytest.mark.parametrize("address", ADDRESSES)
def test_a_page_has_a_title_one_heading_and_landmarks(page_at: PageAt, address: str) -> None:
    html = page_at(address)
    page = Outline(html)
    assert page.open == []
    assert re.search(r"<title>[^<]+ \u00b7 Crosswind</title>", html)
    assert len(page.all("h1")) == len(page.all("main")) == 1
    here = [link["aria-current"] for link in page.all("a") if "aria-current" in link]
    assert here[0] in ("page", "true"), "the entry of the rail"
    assert here.count("page") == (0 if address.startswith(("/runs/", "/selection")) else 1)
    assert page.all("html") == [{"lang": "en"}]
    identifiers = [attributes["id"] for _, attributes in page.elements if "id" in attributes]
    assert len(identifiers) == len(set(identifiers))


@pytest.mark.parametrize("address", ADDRESSES)
def test_a_page_has_no_script_of_its_own_and_nothing_from_elsewhere(page_at: PageAt, address: str) -> None:
    page = Outline(page_at(address))
    for attributes, text in page.scripts:
        assert (attributes.get("type") == "application/json") is not ("src" in attributes)
        assert "src" not in attributes or not text.strip()
    for _, attributes in page.elements:
        assert not [name for name in attributes if name.startswith("on")]
        for name in ("src", "href", "action"):
            assert not re.match(r"[a-z]+:|//", attributes.get(name) or "")


@pytest.mark.parametrize("address", ADDRESSES)
def test_every_figure_has_its_text_twin(page_at: PageAt, address: str) -> None:
    html = page_at(address)
    drawn = set(re.findall(r'data-figure="([a-z]+)"', html))
    figures = re.findall(r"<figure.*?</figure>", html, flags=re.DOTALL)
    assert len(figures) == len(drawn)
    for figure in figures:
        assert re.search(r"<h2[^>]*>[^<]+</h2>\s*<p class=\"twin\">[^<]+\.</p>", figure)
        assert '<details class="numbers" open>' in figure
        assert figure.count("<tr>") >= 2
        assert re.search(r'role="img" aria-label="[^"]+"', figure)
    assert ("plotly-cartesian.min.js" in html) is bool(drawn)


@pytest.mark.parametrize("address", ADDRESSES)
def test_a_page_has_a_json_twin_of_the_same_state(client: TestClient, page_at: PageAt, address: str) -> None:
    html = page_at(address)
    path, _, query = address.partition("?")
    twin = client.get(f"{stem_of(path)}.json?{query}")
    assert twin.headers["content-type"] == "application/json"
    body = twin.json()
    assert [chart["name"] for chart in body["charts"]] == re.findall(r'data-figure="([a-z]+)"', html)
    assert f'href="{"../" * (path.count("/") - 1) or "./"}{stem_of(path)[1:]}.json' in html


@pytest.mark.parametrize("address", ADDRESSES)
def test_a_page_and_its_figures_are_tables_too(client: TestClient, page_at: PageAt, address: str) -> None:
    html = page_at(address)
    path, _, query = address.partition("?")
    path = stem_of(path)
    table = client.get(f"{path}.csv?{query}")
    assert table.headers["content-type"] == "text/csv; charset=utf-8"
    assert f'href="{"../" * (path.count("/") - 1) or "./"}{path[1:]}.csv' in html
    for name in re.findall(r'data-figure="([a-z]+)"', html):
        lines = list(csv.reader(client.get(f"{path}.csv?{query}&figure={name}").text.splitlines()))
        assert len(lines) >= 2
        assert {len(line) for line in lines} == {len(lines[0])}


def test_the_table_of_runs_has_their_fields_under_names_with_dots(client: TestClient) -> None:
    text = client.get("/runs.csv").text
    rows = list(csv.DictReader(text.splitlines()))
    assert [row["run.run_id"] for row in rows] == [
        row["run"]["run_id"] for row in client.get("/runs.json").json()["rows"]
    ]
    assert {row["run.configuration.batch_size"] for row in rows} == {"8"}
    assert json.loads(rows[0]["run.nodes"]) == ["a", "b"]
    assert text.endswith("\r\n")
    answer = client.get("/sql.csv", params={"query": "select -1 as n, '=1+1' as formula, null as nothing"})
    assert answer.text == "n,formula,nothing\r\n-1,'=1+1,\r\n"


def test_a_figure_that_a_page_lacks_is_refused_as_a_table(client: TestClient) -> None:
    answer = client.get("/runs.csv?figure=waterfall")
    assert answer.status_code == 404
    assert "expected runs" in answer.json()["detail"]


def test_links_of_the_pages_lead_somewhere(client: TestClient, page_at: PageAt) -> None:
    targets = set()
    for address in (
        "/runs?limit=2",
        "/runs/r3",
        *(TOP.get(name, f"/{name}") for name in PAGES if name != "run"),
        "/runs/nope",
    ):
        refused = REFUSED.get(address)
        html = html_of(client, address, status=refused) if refused else page_at(address)
        links = {link["href"] or "" for link in Outline(html).all("a")} - {"#main"}
        targets |= {urljoin(f"http://127.0.0.1{address}", link) for link in links}
    assert len(targets) > len(PAGES)
    for target in each_part_once(targets):
        assert client.get(target).status_code == 200, target


def each_part_once(targets: Iterable[str]) -> Iterator[str]:
    """Yield addresses until each path, and each value of a parameter at a path, was in one."""
    seen: set[tuple[str, ...]] = set()
    for target in sorted(targets, key=len, reverse=True):
        address = urlsplit(target)
        parts = {(address.path,), *((address.path, *pair) for pair in parse_qsl(address.query))}
        if not parts <= seen:
            seen |= parts
            yield target


@pytest.mark.parametrize(
    "address", ["/", "/runs", "/variability", "/stragglers", "/regressions", "/counters", "/interference"]
)
def test_an_empty_store_is_one_sentence_and_the_command_that_fills_it(store: Store, address: str) -> None:
    with own_client(patient_app(store), base_url="http://127.0.0.1") as client:
        html = html_of(client, f"{address}?example=no")
    assert "<h1>No run is stored yet.</h1>" in html
    assert "<code>crosswind run -- torchrun --nproc-per-node 2 train.py</code>" in html
    assert "<code>crosswind demo</code>" in html
    assert "data-figure" not in html


def test_a_run_that_cannot_be_judged_says_so_and_what_to_record(client: TestClient) -> None:
    html = html_of(client, "/runs/lost")
    assert "No verdict, on purpose" in html
    assert "Record at least 20 steps" in html
    assert "Waterfall" not in html


@pytest.mark.parametrize(
    ("address", "status", "said"),
    [
        ("/runs/nope", 404, "Run &#39;nope&#39; is not in the catalog"),
        ("/?part=nope", 422, "expected one of running, weather, regressions, stragglers, gaps, all"),
        ("/runs?state=asleep", 422, "expected one of running, completed, failed, stopped, lost"),
        ("/runs?cursor=xyz", 422, "expected the `next` of an earlier page"),
        ("/runs?limit=9999", 422, "expected a whole number from 1 to 200"),
        ("/runs?columns=verdict&columns=mood", 422, "columns=&#39;mood&#39;: expected some of verdict, run"),
        ("/compare?a=r3&b=nope", 404, "Run &#39;nope&#39; is not stored"),
        ("/compare?a=r3&b=r3", 422, "Run r3 is compared with itself: expected two runs"),
        ("/compare?run=r1&run=r2&run=r3", 422, "3 runs, expected one or two"),
        ("/variability?cohort=%3Cb%3E", 404, "Cohort &#39;&lt;b&gt;&#39; has no run"),
        ("/selection", 422, "Query parameter cohort is missing"),
        (f"/selection?cohort={LAB_COHORT}&from=soon", 422, "expected a time as 2026-01-31T12:00"),
        ("/stragglers?kind=socket", 422, "expected one of node, device, rank place, switch"),
        ("/runs/r3?from_step=x", 422, "expected the number of a step, from 0"),
        ("/counters?show=none", 422, "expected one of tested, all"),
        ("/counters?limit=0", 422, "expected a whole number from 1 to 500"),
        ("/interference?limit=401", 422, "expected a whole number from 1 to 400"),
        ("/links?limit=0", 422, "expected a whole number from 1 to 500"),
        ("/data?period=2d", 422, "expected one of 1d, 7d"),
        ("/checks?check=nope", 404, "Check &#39;nope&#39; is not among the newest 20"),
    ],
)
def test_a_refusal_is_a_page_to_readers_and_a_problem_to_machines(
    client: TestClient, address: str, status: int, said: str
) -> None:
    page = Outline(html_of(client, address, status=status))
    assert len(page.all("main")) == 1
    assert said in html_of(client, address, status=status)
    path, _, query = address.partition("?")
    for machine in (client.get(address), client.get(f"{stem_of(path)}.json?{query}", headers={"Accept": "text/html"})):
        assert (machine.status_code, machine.headers["content-type"]) == (status, "application/problem+json")
        assert machine.json()["status"] == status


@pytest.mark.parametrize(
    ("method", "address", "fields", "status", "said"),
    [
        ("GET", "/nope", {}, 404, "No page or resource at /nope"),
        ("GET", "/runs/", {}, 404, "Leave out the slash at the end of the address."),
        ("GET", "/a/b/<i>", {}, 404, "/a/b/&lt;i&gt;"),
        ("POST", "/runs", {}, 405, "POST is not allowed at /runs"),
        ("POST", "/logout", {"Origin": "http://elsewhere.org"}, 403, "Open the page at the server&#39;s own address"),
        ("GET", "/runs", {"Host": "elsewhere.org"}, 403, "Open the page at the server&#39;s own address"),
        ("GET", "/runs.html?limit=0", {}, 422, "expected a whole number from 1 to 200"),
    ],
)
def test_every_refusal_is_a_page_in_a_browser(
    client: TestClient, method: str, address: str, fields: dict[str, str], status: int, said: str
) -> None:
    answer = client.request(
        method, address, headers={**fields, "Accept": "text/html,*/*;q=0.8"}, follow_redirects=False
    )
    assert (answer.status_code, answer.headers["content-type"]) == (status, "text/html; charset=utf-8")
    assert said in answer.text
    assert "default-src" in answer.headers["content-security-policy"]
    page = Outline(answer.text)
    assert page.open == []
    assert page.all("link")[1]["href"].startswith("../" * (address.count("/") - 1) or "./")  # type: ignore[union-attr]
    machine = client.request(method, address, headers={**fields, "Accept": "application/json"}, follow_redirects=False)
    assert (machine.status_code, machine.headers["content-type"]) == (status, "application/problem+json")


def test_the_api_refuses_a_browser_as_it_does_a_program(client: TestClient) -> None:
    answer = client.get("/v1/runs/nope", headers={"Accept": "text/html"})
    assert (answer.status_code, answer.headers["content-type"]) == (404, "application/problem+json")


def test_hostile_names_are_text_on_every_page(store: Store, record: Record) -> None:
    tags = {HOSTILE: HOSTILE, "injected": HOSTILE}
    cohort = cohort_digest(Run("any", HOSTILE, "lab", RunState.COMPLETED, 2, {HOSTILE: HOSTILE}))
    for number in range(5):
        facts = {"workload": HOSTILE, "configuration": {HOSTILE: HOSTILE}, "tags": tags}
        record(store, f"r{number}", slower_ms=30 * (number == 4), **facts)
    store_traces(store, "r4", mark=HOSTILE)
    with own_client(patient_app(store), base_url="http://127.0.0.1") as client:
        for address in (
            *("/?part=all", f"/?workload={HOSTILE}&system={HOSTILE}"),
            *("/runs", f"/runs?cause={HOSTILE}"),
            *("/runs/r4", "/runs/r4/trace"),
            *("/compare?a=r4", "/compare?a=r4&b=r3", f"/runs?user={HOSTILE}&columns=user,job"),
            *("/variability", "/stragglers", "/regressions", "/energy"),
            *("/counters?example=no", "/interference?example=no"),
            f"/selection?cohort={cohort}&slower=1.2",
            f"/stragglers?node={HOSTILE}",
            f"/checks?system={HOSTILE}",
            f"/runs?workload={HOSTILE}",
            f"/runs?q={HOSTILE}",
            f"/predict?like=r4&config={HOSTILE}=1",
            f"/predict?workload={HOSTILE}&ranks={HOSTILE}",
            f"/predict?script=srun+{HOSTILE}",
        ):
            html = html_of(client, address)
            page = Outline(html)
            assert page.open == []
            assert not page.all("img")
            assert "alert(1)" in html
            assert "{{7*191}}" in html
            assert not [text for _, text in page.scripts if "<" in text]


def test_behind_a_prefix_addresses_stay_behind_it(lab: Store) -> None:
    settings = ServerSettings(root_path="/node/gpu07/8000", token="0123456789abcdef")
    with own_client(patient_app(lab, settings), base_url="http://127.0.0.1") as client:
        client.headers["X-Crosswind-Token"] = "0123456789abcdef"
        html = html_of(client, "/node/gpu07/8000/runs/r3")
        assert 'href="../static/crosswind.css' in html
        assert html_of(client, "/node/gpu07/8000/runs").count('href="./static/crosswind.css') == 1
        missing = html_of(client, "/node/gpu07/8000/runs/nope", status=404)
        assert 'href="../static/crosswind.css' in missing


def test_an_error_page_stands_alone() -> None:
    page = Outline(render_error(503, "Not now", "the <catalog> does not answer", remedy="Try again."))
    assert page.open == []
    assert [(link["href"] or "").startswith("/static/") for link in page.all("link")] == [True, True]
    assert "The &lt;catalog&gt; does not answer" in render_error(503, "Not now", "the <catalog> does not answer")


@pytest.mark.parametrize(
    ("accepted", "coding", "most"), [("br, zstd, gzip", "zstd", 470_000), ("gzip", "gzip", 505_000)]
)
def test_the_scripts_of_a_page_are_half_a_megabyte(client: TestClient, accepted: str, coding: str, most: float) -> None:
    if coding == "zstd" and zstd_module() is None:
        pytest.skip("no zstd")
    scripts = re.findall(r'(?:src|href)="\.(/static/[^"]+\.js\?[^"]+)"', html_of(client, "/runs"))
    assert len(scripts) == 3
    sent = [client.get(script, headers={"Accept-Encoding": accepted}) for script in scripts]
    plain = [client.get(script, headers={"Accept-Encoding": "identity"}) for script in scripts]
    assert {one.headers["content-encoding"] for one in sent} == {coding}
    assert [one.content for one in sent] == [one.content for one in plain]
    assert sum(int(one.headers["content-length"]) for one in sent) < most


def test_files_are_kept_by_their_content(client: TestClient) -> None:
    address = re.findall(r'href="\.(/static/plotly[^"]+)"', html_of(client, "/runs"))[0]
    first = client.get(address, headers={"Accept-Encoding": "gzip"})
    assert (first.headers["content-encoding"], first.headers["content-type"]) == (
        "gzip",
        "text/javascript; charset=utf-8",
    )
    assert "immutable" in first.headers["cache-control"]
    again = client.get(address, headers={"If-None-Match": first.headers["etag"]})
    assert (again.status_code, again.content) == (304, b"")
    plain = client.get("/static/plotly-cartesian.min.js", headers={"Accept-Encoding": "identity"})
    assert "content-encoding" not in plain.headers
    assert plain.headers["cache-control"] == "no-cache"
    assert plain.content == first.content
    assert client.get("/static/..%2fpalette.py").status_code == 404
