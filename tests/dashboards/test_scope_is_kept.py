"""System, workload and period stay in the address from page to page: by links, and by the forms of pages."""

import re
import shutil
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import parse_qs, urlencode, urljoin, urlsplit

import pytest
from starlette.testclient import TestClient
from tests.dashboards.test_every_page import Outline, html_of
from tests.serving import own_client, patient_app

from crosswind.dashboards.pages.render import Address
from crosswind.data.store.store import Store

TOP = "http://127.0.0.1"
SCOPE = {"system": "lab", "workload": "nanogpt", "period": "365d"}
ASKED = "&".join(f"{name}={value}" for name, value in SCOPE.items())
PARTS = re.compile(r'<(?P<tag>header|nav) class="(?:rail|tabs|crumbs)".*?</(?P=tag)>', re.DOTALL)
WITH_FORMS = ("/data", "/links", "/example/checks", "/example/studies", "/sql", "/compare?a=r3")
AROUND_A_RUN = ("/runs/r3", "/runs/r3/trace", "/compare?a=r3&b=r1")


@pytest.fixture(scope="module")
def client(homes: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[TestClient]:
    home = Path(shutil.copytree(homes / "lab", tmp_path_factory.mktemp("kept") / "lab"))
    with Store.open(home) as lab, own_client(patient_app(lab), base_url=TOP) as opened:
        yield opened


def asked(address: str) -> str:
    return f"{address}{'&' if '?' in address else '?'}{ASKED}"


def scope_in(address: str) -> dict[str, str]:
    query = parse_qs(urlsplit(address).query)
    return {name: query[name][0] for name in SCOPE if name in query}


@pytest.mark.parametrize("address", [*AROUND_A_RUN, "/runs", "/data", "/studies?example=no"])
def test_the_ways_to_other_pages_keep_it(client: TestClient, address: str) -> None:
    html = html_of(client, asked(address))
    links = [link["href"] or "" for part in PARTS.finditer(html) for link in Outline(part[0]).all("a")]
    kept = [link for link in links if not re.search(r"(?:docs|login|wordmark)$|\.(?:json|csv|html)\b", link)]
    ways = [link for link in kept if link.strip("./")]
    assert len(ways) > 5
    assert [link for link in ways if scope_in(urljoin(TOP, link)) | {"workload": ""} != SCOPE | {"workload": ""}] == []


def test_a_run_in_the_list_is_opened_with_it_and_leads_back_to_it(client: TestClient) -> None:
    [row, *_] = [
        link["href"] or ""
        for link in Outline(html_of(client, "/runs?system=lab&workload=nanogpt")).all("a")
        if link.get("class") == "row-link"
    ]
    assert scope_in(urljoin(TOP, row)) == {"system": "lab", "workload": "nanogpt"}
    html = html_of(client, urljoin(f"{TOP}/", row))
    assert '<a href="../runs?system=lab&amp;workload=nanogpt">Runs</a>' in html


@pytest.mark.parametrize("address", WITH_FORMS)
def test_a_form_sends_what_it_has_no_field_for(client: TestClient, address: str) -> None:
    scope = {**SCOPE, "system": client.get("/example/checks.json").json()["system"], "example": "no"}
    html = html_of(client, f"{address}{'&' if '?' in address else '?'}{urlencode(scope)}")
    [form, *_] = re.findall(r"<form(?![^>]*search)[^>]*>.*?</form>", html, re.DOTALL)
    page = Outline(form)
    fields = {field["name"] for tag, field in page.elements if tag in ("input", "select") and "name" in field}
    hidden = {field["name"]: field["value"] for field in page.all("input") if field.get("type") == "hidden"}
    assert fields >= SCOPE.keys()
    assert scope.items() >= hidden.items()


def test_what_a_link_is_about_goes_before_what_is_kept() -> None:
    here = Address("../", "/runs/r1", {**SCOPE, "from_step": "3"})
    assert here.to("runs", workload="bert") == "../runs?system=lab&workload=bert&period=365d"
    assert here.to_run("a/b", "/trace") == f"../runs/a%2Fb/trace?{ASKED}"
    assert Address("./", "/").to_run("r1") == "./runs/r1"
