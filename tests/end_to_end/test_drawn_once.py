"""Figures that plotly draws once: where labels need more room than a figure leaves them, it draws all of it again."""

import pytest
from tests.end_to_end.addresses import names
from tests.end_to_end.visits import Contexts

DRAWN_AGAIN = """[...document.querySelectorAll(".plot.drawn")]
  .filter((plot) => plot._fullLayout._redrawFromAutoMarginCount !== undefined).map((plot) => plot.dataset.figure)"""
OF_LONG_NAMES = {"waterfall"}  # whose labels on the left are as long as its data has them


@pytest.mark.parametrize("address", ["/runs/{run}", "/runs", "/variability"])
def test_labels_have_the_room_that_they_need(contexts: Contexts, sample_top: str, address: str) -> None:
    visit = contexts.visit(sample_top)
    visit.go(address.format(**names(sample_top)))
    visit.is_drawn()
    assert set(visit.page.evaluate(DRAWN_AGAIN)) <= OF_LONG_NAMES
    visit.close()
