"""Node lists are counted at once as they are one by one."""

import pyarrow as pa
import pytest

from crosswind.data.schema.hostlist import NAME_LIMIT, NODES_LIMIT, expand
from crosswind.ingest.readers.slurm.node_counts import node_counts

COUNTED = {
    "n1": 1,
    "n[1-3]": 3,
    "node[0098-0101]": 4,
    "node-a[1-2]": 2,
    "n[5]": 1,
    "n[1-3,5,07-10]": 8,
    "n[1-3,07-10],gpu[01-02]-ib0": 9,
    "r[1-2]n[1-4]": 8,
    f"n[1-{NODES_LIMIT}]": NODES_LIMIT,
    "None assigned": 0,
    "": 0,
}
REFUSED = (
    *(
        "n[3-1]",
        "n[1-]",
        "n[-1]",
        "n[1-2",
        "n1-2]",
        "n[]",
        "n[1-2]]",
        "[[1-2]",
        "-n[1-2]",
        "n[a-b]",
        "n[1-2-3]",
        "n[1-2,4-3]",
        "n[1,,2]",
        "n[1,]",
    ),
    *(f"n[0-{NODES_LIMIT}]", "n[1-9999999999]", "n" * (NAME_LIMIT + 1), "a b", "n[ 1-2]", "n[1-٣]", "ñ"),
)


def test_the_nodes_of_each_list_are_counted() -> None:
    sizes = node_counts(pa.array([*COUNTED, *REFUSED, *COUNTED]))
    assert sizes.values.to_pylist()[: len(COUNTED)] == list(COUNTED.values()) == [len(expand(text)) for text in COUNTED]
    assert sizes.values.to_pylist()[-len(COUNTED) :] == list(COUNTED.values())
    assert [text for text, doubtful in zip(REFUSED, sizes.doubtful[len(COUNTED) :], strict=False) if not doubtful] == []
    assert not sizes.doubtful[: len(COUNTED)].any()


@pytest.mark.parametrize("texts", [[], [""], ["n1"], ["n1", "n2"], ["n[1-2]"]])
def test_lists_of_one_kind_alone_are_counted(texts: list[str]) -> None:
    assert node_counts(pa.array(texts, pa.string())).values.to_pylist() == [len(expand(text)) for text in texts]
