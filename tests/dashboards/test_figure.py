import json
from datetime import UTC, datetime

import numpy as np
import plotly.graph_objects as go

from crosswind.dashboards.figure import Figure


def test_a_figure_is_what_plotly_s_own_classes_make_of_the_same_calls() -> None:
    layout = {"margin": {"l": 8, "t": 36}, "xaxis": {"title": {"text": "step"}}, "yaxis": {}}
    ours, theirs = Figure(layout), go.Figure(layout={"template": "none", **layout})
    for figure in (ours, theirs):
        figure.add_scatter(x=[1, 2], y=[None, 2.5], name=None, line={"color": "#000", "width": None})
        figure.add_bar(x=[1], y=["a"], orientation="h")
        figure.add_hline(1, line={"width": 1}, layer="below")
        figure.add_vline(2, line={"dash": "dot"})
        figure.add_annotation(x=1, y=2, text="here")
        figure.update_layout(yaxis2={"anchor": "x"}, margin={"l": 72}, bargap=0)
        figure.update_xaxes(range=[0, 2]).update_yaxes(showgrid=False)
    wanted = json.loads(str(theirs.to_json()))
    del wanted["layout"]["template"]
    assert json.loads(ours.to_json()) == wanted
    assert ours.as_plotly() == theirs


def test_what_json_lacks_has_a_place_in_it() -> None:
    moment = datetime(2026, 11, 20, tzinfo=UTC)
    figure = Figure({}).add_scatter(x=np.array([1, 2]), y=[float("nan"), np.float32(0.5)], customdata=[[moment]])
    [trace] = json.loads(figure.to_json())["data"]
    assert trace == {"type": "scatter", "x": [1, 2], "y": [None, 0.5], "customdata": [["2026-11-20T00:00:00+00:00"]]}


def test_a_figure_leaves_alone_the_layout_that_it_began_with() -> None:
    layout = {"xaxis": {"title": {"text": "step"}}}
    Figure(layout).update_xaxes(title=None).add_annotation(text="here")
    assert layout == {"xaxis": {"title": {"text": "step"}}}
