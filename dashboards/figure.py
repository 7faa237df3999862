"""Figures as plotly.js takes them, put together without plotly's own classes, which check every value that they get.

On a page of a hundred milliseconds those checks were half of the time; the tests have plotly check each figure.
"""

import json
import re
from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any, Self

if TYPE_CHECKING:  # heavy
    import plotly.graph_objects as go

Parts = dict[str, Any]


class Figure:
    """Traces and layout in the words of plotly.js; a part that is None counts as not given."""

    def __init__(self, layout: Mapping[str, Any]) -> None:
        self.traces: list[Parts] = []
        self.layout: Parts = dict(layout)

    def add_traces(self, traces: Iterable[Mapping[str, Any]]) -> Self:
        """Add traces, each with its type."""
        self.traces += map(dict, traces)
        return self

    def add_scatter(self, **trace: Any) -> Self:
        """Add points or a line."""
        return self.add_traces([{"type": "scatter", **trace}])

    def add_bar(self, **trace: Any) -> Self:
        """Add bars."""
        return self.add_traces([{"type": "bar", **trace}])

    def add_heatmap(self, **trace: Any) -> Self:
        """Add a heat map."""
        return self.add_traces([{"type": "heatmap", **trace}])

    def add_contour(self, **trace: Any) -> Self:
        """Add contours of a surface."""
        return self.add_traces([{"type": "contour", **trace}])

    def add_shape(self, **shape: Any) -> Self:
        """Add a shape."""
        return self._add("shapes", shape)

    def add_annotation(self, **annotation: Any) -> Self:
        """Add a text."""
        return self._add("annotations", annotation)

    def add_hline(self, y: Any, **shape: Any) -> Self:
        """Add a line from left to right."""
        return self.add_shape(type="line", x0=0, x1=1, xref="x domain", y0=y, y1=y, yref="y", **shape)

    def add_vline(self, x: Any, **shape: Any) -> Self:
        """Add a line from top to bottom."""
        return self.add_shape(type="line", x0=x, x1=x, xref="x", y0=0, y1=1, yref="y domain", **shape)

    def update_layout(self, changes: Mapping[str, Any] | None = None, **more: Any) -> Self:
        """Change parts of the layout, parts within parts as well."""
        self.layout = _changed(self.layout, {**(changes or {}), **more})
        return self

    def update_xaxes(self, **changes: Any) -> Self:
        """Change every x axis."""
        return self._update_axes("xaxis", changes)

    def update_yaxes(self, **changes: Any) -> Self:
        """Change every y axis."""
        return self._update_axes("yaxis", changes)

    def to_json(self) -> str:
        """Return the figure as JSON; what is no finite number is null."""
        text = json.dumps(self._parts(), separators=(",", ":"), default=_plain)
        if "NaN" not in text and "Infinity" not in text:
            return text
        return json.dumps(json.loads(text, parse_constant=lambda _: None), separators=(",", ":"))

    def as_plotly(self) -> "go.Figure":
        """Return plotly's figure. Raises: ValueError for what plotly does not know."""
        import plotly.graph_objects as go  # noqa: PLC0415 - heavy

        parts = self._parts()
        return go.Figure(parts["data"], {"template": "none", **parts["layout"]})

    def _add(self, name: str, one: Parts) -> Self:
        self.layout[name] = [*self.layout.get(name, ()), one]
        return self

    def _update_axes(self, name: str, changes: Parts) -> Self:
        axes = [axis for axis in self.layout if re.fullmatch(rf"{name}\d*", axis)]
        return self.update_layout(dict.fromkeys(axes, changes))

    def _parts(self) -> Parts:
        return {"data": [_given(trace) for trace in self.traces], "layout": _given(self.layout)}


def _changed(parts: Mapping[str, Any], changes: Mapping[str, Any]) -> Parts:
    both = {
        name: _changed(parts[name], value)
        for name, value in changes.items()
        if isinstance(value, Mapping) and isinstance(parts.get(name), Mapping)
    }
    return {**parts, **changes, **both}


def _given(value: Any) -> Any:
    """Return the value without the parts that are None; a None among numbers is a gap and stays."""
    if isinstance(value, Mapping):
        return {name: _given(part) for name, part in value.items() if part is not None}
    if isinstance(value, list | tuple) and value and isinstance(value[0], Mapping):
        return [_given(part) for part in value]
    return value


def _plain(value: Any) -> Any:
    """Return numpy's and pandas' values as JSON's, a time as text."""
    return value.isoformat() if hasattr(value, "isoformat") else value.tolist()
