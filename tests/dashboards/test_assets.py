import pytest
from plotly.offline import get_plotlyjs_version

from crosswind.dashboards.assets import MEDIA_TYPES, asset
from crosswind.data.schema.errors import NotFoundError


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
