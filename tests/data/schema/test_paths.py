from pathlib import Path

import pytest

from crosswind.data.schema.errors import InvalidInputError
from crosswind.data.schema.paths import spool_directory, store_home


def test_the_environment_says_where_things_are_kept() -> None:
    assert store_home({"CROSSWIND_HOME": "/a"}) == Path("/a")
    assert store_home({"XDG_DATA_HOME": "/data"}) == Path("/data/crosswind")
    assert spool_directory({"CROSSWIND_HOME": "/a"}) == Path("/a/spool")
    assert spool_directory({"CROSSWIND_HOME": "/a", "CROSSWIND_SPOOL": "/b"}) == Path("/b")


def test_a_user_without_a_home_learns_what_to_set() -> None:
    with pytest.raises(InvalidInputError, match="CROSSWIND_HOME"):
        store_home({"CROSSWIND_HOME": "~nobody-of-this-name/store"})
