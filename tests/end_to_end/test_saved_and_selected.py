"""Figures saved as files by the buttons below them, and runs selected by a lasso, in a real browser over the sample."""

import base64
import xml.etree.ElementTree as ET
from collections.abc import Iterator
from urllib.parse import parse_qs, urlsplit

import pytest
from playwright.sync_api import Locator
from tests.end_to_end.addresses import addresses_of
from tests.end_to_end.visits import Contexts, Visit, json_of

pytestmark = pytest.mark.thorough
PIXELS = """async (text) => {
  const bytes = Uint8Array.from(atob(text), (one) => one.charCodeAt(0));
  const image = await createImageBitmap(new Blob([bytes], { type: "image/png" }));
  const context = new OffscreenCanvas(image.width, image.height).getContext("2d");
  context.drawImage(image, 0, 0);
  const { data } = context.getImageData(0, 0, image.width, image.height);
  return { width: image.width, height: image.height, colours: new Set(new Uint32Array(data.buffer)).size };
}"""
LABELS = "(plot) => [...plot.querySelectorAll('.xtitle, .ytitle, .x2title')].map((one) => one.textContent)"
AROUND = ((-9, -9), (9, -9), (9, 9), (-9, 9), (-9, -9))  # pixels


@pytest.fixture
def visit(contexts: Contexts, sample_top: str) -> Iterator[Visit]:
    visit = contexts.visit(sample_top)
    yield visit
    visit.close()


def saved(visit: Visit, button: Locator) -> bytes:
    """Return the file that a click on a button downloads."""
    with visit.page.expect_download() as download:
        button.click()
    return download.value.path().read_bytes()


@pytest.mark.parametrize(
    "state", ["/runs/{run}", "/predict?like={run}", "/variability", "/studies", "/models", "/energy", "/stragglers"]
)
def test_every_figure_is_saved_as_a_whole_image_with_its_words(visit: Visit, state: str) -> None:
    visit.go(addresses_of("sample", visit.top)[state])
    visit.is_drawn()
    figures = visit.page.locator("figure.chart:has(.plot)").all()
    assert figures
    for figure in figures:
        svg = ET.fromstring(saved(visit, figure.locator("button", has_text="SVG")))
        words = {"".join(one.itertext()) for one in svg.iter("{http://www.w3.org/2000/svg}text")}
        title = "".join(figure.locator("h2").inner_text().split())
        assert svg.tag == "{http://www.w3.org/2000/svg}svg"
        assert title in {"".join(one.split()) for one in words}
        assert set(figure.locator(".plot").evaluate(LABELS)) <= words
        png = saved(visit, figure.locator("button", has_text="PNG"))
        image = visit.page.evaluate(PIXELS, base64.b64encode(png).decode())
        assert image["width"] == float(svg.attrib["width"])
        assert image["height"] == float(svg.attrib["height"])
        assert image["colours"] > 10
    assert visit.problems == []


def test_a_lasso_around_a_run_leads_to_its_selection(visit: Visit) -> None:
    visit.go("/variability")
    visit.is_drawn()
    visit.page.get_by_role("button", name="Draw a lasso").click()
    boxes = [one.bounding_box() for one in visit.page.locator("#figure-cohort .points path").all()]
    top = min((box for box in boxes if box), key=lambda box: box["y"])
    x, y = top["x"] + top["width"] / 2, top["y"] + top["height"] / 2
    visit.page.mouse.move(x + AROUND[0][0], y + AROUND[0][1])
    visit.page.mouse.down()
    for right, down in AROUND[1:]:
        visit.page.mouse.move(x + right, y + down, steps=4)
    visit.page.mouse.up()
    visit.page.wait_for_url("**/selection?*runs=*")
    run_ids = parse_qs(urlsplit(visit.page.url).query)["runs"][0].split(",")
    visit.is_drawn()
    address = visit.page.url.removeprefix(visit.top).replace("/selection", "/selection.json")
    assert json_of(visit.top, address)["selected"] == run_ids
    assert f"{len(run_ids)} run" in visit.page.locator("main").inner_text()
    assert visit.problems == []
