"""The names that programs import from `crosswind` itself."""

import subprocess
import sys

import pytest

import crosswind
from crosswind.data.schema.answers.explanations import CauseShare, Explanation, Interval, Verdict
from crosswind.notebook import explanation_html

CODE = """
import sys, crosswind
names = [crosswind.connect, crosswind.connect_async, crosswind.LikeRun("r"), crosswind.run]
print(sorted({"asyncio", "http.client", "numpy", "pandas", "IPython"} & sys.modules.keys()))
"""


def test_every_name_is_there_and_loads_little() -> None:
    said = subprocess.run([sys.executable, "-c", CODE], capture_output=True, text=True, check=True).stdout
    assert said.strip() == "[]"
    assert all(getattr(crosswind, name) for name in crosswind.__all__)
    with pytest.raises(AttributeError, match="no attribute 'nosuch'"):
        _ = crosswind.nosuch


def test_an_explanation_in_a_notebook_has_bars_and_its_names_are_inert() -> None:
    share = CauseShare("<script>", Interval(2.0, 1.0, 3.0), "")
    slow = Explanation("r", Verdict.SLOW, "<b>slow</b>", "wait", 9, 40, measured_seconds=4.0, expected_seconds=2.0)
    assert explanation_html(slow) is None
    numbers = {"excess": Interval(2.0, 1.0, 3.0), "unexplained": Interval(0.0, 0.0, 0.0), "shares": (share,)}
    html = explanation_html(Explanation(**{**vars(slow), **numbers})) or ""
    assert html.count("width:150px") == 2  # half of the time was expected, half is one cause's
    assert "&lt;b&gt;slow&lt;/b&gt;" in html
    assert "<script>" not in html
