"""A series as text: a name, and labels in braces.

Source: https://prometheus.io/docs/instrumenting/exposition_formats/, https://prometheus.io/docs/specs/om/open_metrics_spec/
"""

import re

from crosswind.data.schema.errors import MalformedError

# No backtracking: a hostile line of a megabyte would take hours.
QUOTED = r'"(?:[^"\\]++|\\.)*+"'
PLAIN = r"[a-zA-Z_:][a-zA-Z0-9_:]*+"
BRACES = rf'\{{(?:[^"{{}}]++|{QUOTED})*+\}}'
SERIES = re.compile(rf"({PLAIN})?[ \t]*+({BRACES})?")
LABEL = re.compile(rf"[ \t]*+({PLAIN}|{QUOTED})[ \t]*+(?:=[ \t]*+({QUOTED})[ \t]*+)?(?:,|$)")
ESCAPED = re.compile(r'\\([\\"n])')
EXPECTED = 'expected NAME{LABEL="VALUE",...} VALUE [TIME]'
NAME_LABEL = "__name__"
MOST_LABELS = 100


def parsed_series(text: str) -> tuple[str, dict[str, str]]:
    """Return name and labels without empty ones, which mean nothing. Raises: MalformedError."""
    match = SERIES.fullmatch(text)
    if match is None:
        raise MalformedError(EXPECTED)
    labels = _labels((match[2] or "{}")[1:-1])
    name = match[1] or labels.pop(NAME_LABEL, "")
    if not name or NAME_LABEL in labels:
        raise MalformedError("a series without a name, or with two")
    return name, {label: value for label, value in labels.items() if value}


def _labels(text: str) -> dict[str, str]:
    labels: dict[str, str] = {}
    place = 0
    while text[place:].strip(" \t"):
        match = LABEL.match(text, place)
        if match is None:
            raise MalformedError(EXPECTED)
        label, value = match[1], match[2]
        if value is None:  # a quoted name among the labels
            if not label.startswith('"'):
                raise MalformedError(EXPECTED)
            label, value = NAME_LABEL, label
        label = unquoted(label) if label.startswith('"') else label
        if label in labels or len(labels) == MOST_LABELS:
            raise MalformedError(f"label {label[:40]!r} is repeated, or more than {MOST_LABELS} labels")
        labels[label] = unquoted(value)
        place = match.end()
    return labels


def unquoted(text: str) -> str:
    r"""The text between quotes, its \\, \" and \n undone."""
    inner = text[1:-1]
    return ESCAPED.sub(lambda match: "\n" if match[1] == "n" else match[1], inner) if "\\" in inner else inner
