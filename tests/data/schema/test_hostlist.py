import pytest
from hypothesis import given
from hypothesis import strategies as st

from crosswind.data.schema.errors import MalformedError
from crosswind.data.schema.hostlist import NODES_LIMIT, compress, count, expand, short_form


@pytest.mark.parametrize(
    ("text", "nodes"),
    [
        ("n1", ["n1"]),
        ("n[1-3,07-10]", ["n1", "n2", "n3", "n07", "n08", "n09", "n10"]),
        ("n[1-3,07-10],gpu[01-02]-ib0", ["n1", "n2", "n3", "n07", "n08", "n09", "n10", "gpu01-ib0", "gpu02-ib0"]),
        ("r[1-2]n[1-4]", ["r1n1", "r1n2", "r1n3", "r1n4", "r2n1", "r2n2", "r2n3", "r2n4"]),
        ("n[8-11]", ["n8", "n9", "n10", "n11"]),
        ("n[098-101]", ["n098", "n099", "n100", "n101"]),
        ("login.cluster.example,n[3]", ["login.cluster.example", "n3"]),
        ("[1-2]x", ["1x", "2x"]),
        ("n2,n1,n2", ["n2", "n1", "n2"]),
        ("None assigned", []),
        ("", []),
    ],
)
def test_a_short_form_stands_for_these_nodes(text: str, nodes: list[str]) -> None:
    assert expand(text) == tuple(nodes) == expand(short_form(text))
    assert count(text) == len(nodes)


@pytest.mark.parametrize(
    ("text", "complaint"),
    [
        ("n[1-3", "brackets do not pair at character 2"),
        ("n1-3]", "brackets do not pair at character 5"),
        ("n[[1-2]]", "brackets do not pair at character 2"),
        ("n[]", "'' is no range"),
        ("n[3-1]", "'3-1' is no range"),
        ("n[a-c]", "'a-c' is no range"),
        ("n[1-2-3]", "'1-2-3' is no range"),
        ("n[1,,2]", "'' is no range"),
        ("n1,,n2", "a name is missing beside a comma"),
        (",n1", "a name is missing beside a comma"),
        ("n1,", "a name is missing beside a comma"),
        ("../../etc/passwd", "cannot be part of a host name"),
        ("n1;rm", "cannot be part of a host name"),
        ("nœud1", "cannot be part of a host name"),
        ("..", "is no host name"),
        ("-n[1-2]", "is no host name"),
        ("n" * 254, "is no host name"),
    ],
)
def test_anything_else_is_refused_with_the_reason(text: str, complaint: str) -> None:
    with pytest.raises(MalformedError, match="node list") as refusal:
        expand(text)
    assert complaint in str(refusal.value)
    with pytest.raises(MalformedError, match="node list"):
        count(text)


def test_a_hundred_thousand_nodes_are_the_most() -> None:
    assert len(expand(f"n[1-{NODES_LIMIT}]")) == NODES_LIMIT
    for hostile in (f"n[0-{NODES_LIMIT}]", "n[1-999999999]", "r[1-999]n[1-999]", "a[1-60000],b[1-60000]", "[1-9]" * 60):
        with pytest.raises(MalformedError, match="more than 100000 nodes"):
            expand(hostile)
        with pytest.raises(MalformedError, match="more than 100000 nodes"):
            count(hostile)


def test_a_long_broken_list_is_refused_at_once() -> None:
    with pytest.raises(MalformedError, match="do not pair"):
        expand("n" * 200_000 + "[")  # a pattern that backtracks would never end


@pytest.mark.parametrize(
    ("nodes", "text"),
    [
        (["n1"], "n1"),
        (["n3", "n1", "n2", "n2"], "n[1-3]"),
        (["n1", "n2", "n3", "n07", "n08", "n10", "login"], "login,n[1-3,07-08,10]"),
        (["r1n1-ib0", "r1n2-ib0", "r1n1-ib1"], "r1n1-ib[0-1],r1n2-ib0"),
        (["gpu098", "gpu099", "gpu100"], "gpu[098-100]"),
        (["7", "8"], "[7-8]"),
        ([], ""),
    ],
)
def test_names_become_a_short_form(nodes: list[str], text: str) -> None:
    assert compress(nodes) == text


@given(st.lists(st.from_regex(r"[a-c0-1]{1,3}[0-9]{0,20}(-i[0-9]?)?", fullmatch=True), max_size=30))
def test_a_short_form_stands_for_the_names_that_it_was_made_of(names: list[str]) -> None:
    assert sorted(expand(compress(names))) == sorted(set(names))


@pytest.mark.parametrize("name", ["", "-n1", "n[1]", "n1,n2", "n 1", "n\n1", "n\u0661", "n;reboot", "n" * 300])
def test_what_is_no_host_name_does_not_come_into_a_short_form(name: str) -> None:
    with pytest.raises(MalformedError, match="no host name"):
        compress(["n1", name])
