import gzip

import pytest
from plotly.offline import get_plotlyjs_version
from tests.serving import own_client

from crosswind.api.app import create_app
from crosswind.api.delivery.coding import PACKS
from crosswind.dashboards.assets import JAVASCRIPT, MEDIA_TYPES, asset
from crosswind.data.schema.errors import NotFoundError
from crosswind.data.store.store import Store

OF_THE_API = ("docs.js", "swagger-ui-bundle.js")  # on the page of its description alone
MOST_SCRIPT = 500_000  # bytes as sent, once


@pytest.mark.parametrize("name", MEDIA_TYPES)
def test_a_file_is_read_once(name: str) -> None:
    assert asset(name) is asset(name)
    assert len(asset(name).version) == 16


@pytest.mark.parametrize("name", ["../palette.py", "/etc/passwd", "plotly-cartesian.min.js.map", ""])
def test_only_listed_files_are_served(name: str) -> None:
    with pytest.raises(NotFoundError, match="expected one of crosswind"):
        asset(name)


def test_plotly_js_is_the_one_that_the_figures_are_made_for() -> None:
    version = f"plotly.js (cartesian - minified) v{get_plotlyjs_version()}\n"
    assert version.encode() in asset("plotly-cartesian.min.js").body[:200]


def test_plotly_js_is_compiled_once() -> None:
    body = asset("plotly-cartesian.min.js").body
    assert b"this, (() => {" in body[:600], "the wrapper's function is not in parentheses (docs/dependencies.md)"
    assert body.endswith(b"return Plotly;\n})));")


@pytest.mark.parametrize("coding", PACKS)
def test_all_scripts_of_the_pages_are_small_enough_for_a_slow_line(store: Store, coding: str) -> None:
    scripts = [name for name, kind in MEDIA_TYPES.items() if kind == JAVASCRIPT and name not in OF_THE_API]
    client, sent = own_client(create_app(store)), 0
    for name in scripts:
        with client.stream("GET", f"/static/{name}", headers={"Accept-Encoding": coding}) as answer:
            sent += len(b"".join(answer.iter_raw()))
    assert 100_000 < sent <= MOST_SCRIPT


def test_a_script_that_is_kept_packed_is_sent_so(store: Store) -> None:
    client, file = own_client(create_app(store)), asset("plotly-cartesian.min.js")
    with client.stream("GET", "/static/plotly-cartesian.min.js", headers={"Accept-Encoding": "gzip"}) as answer:
        assert b"".join(answer.iter_raw()) == file.zipped
    assert file.zipped is not None
    assert gzip.decompress(file.zipped) == file.body
