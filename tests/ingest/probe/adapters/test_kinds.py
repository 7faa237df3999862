from collections import OrderedDict

import pytest

from crosswind.ingest.probe.adapters.kinds import is_kind


class Sorted(OrderedDict[str, int]):
    """A class of the user's that derives from a framework's."""


@pytest.mark.parametrize(
    ("names", "expected"),
    [
        (("collections.OrderedDict",), True),
        (("builtins.str", "builtins.dict"), True),
        (("tests.Sorted",), True),  # it stands somewhere below
        (("collections.Sorted",), False),
        (("collect.OrderedDict",), False),
        (("OrderedDict",), False),
    ],
)
def test_a_thing_is_of_a_kind_by_any_of_its_classes_wherever_in_the_package(
    names: tuple[str, ...], expected: bool
) -> None:
    assert is_kind(Sorted(), *names) is expected
