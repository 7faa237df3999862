from pathlib import Path

import pytest

from crosswind.data.schema.errors import UnavailableError
from crosswind.data.schema.metric import Sample
from crosswind.ingest.collectors.listing import LISTED_NS, Listing, names_if_any, names_in


class Shelf:
    """Devices that a test puts in and takes out, and a clock."""

    def __init__(self, *names: str) -> None:
        self.names = list(names)
        self.now_ns = 5
        self.looks = 0
        self._listing: Listing[str] = Listing(lambda: self.now_ns)

    def _find(self) -> list[str]:
        self.looks += 1
        return list(self.names)

    def _read(self, name: str) -> Sample | None:
        return Sample(name, {}) if name in self.names else None

    def shown(self) -> list[str]:
        return [sample.device for sample in self._listing.samples(self._find, self._read)]


def test_devices_are_looked_for_once_in_a_while() -> None:
    shelf = Shelf("a", "b")
    assert [shelf.shown() for _ in range(3)] == [["a", "b"]] * 3
    assert shelf.looks == 1
    shelf.now_ns += LISTED_NS
    shelf.shown()
    assert shelf.looks == 2


def test_a_device_that_comes_is_noticed_within_ten_seconds() -> None:
    shelf = Shelf("a")
    shelf.shown()
    shelf.names.append("b")
    assert shelf.shown() == ["a"]
    shelf.now_ns += 9_000_000_000
    assert shelf.shown() == ["a", "b"]


def test_a_device_that_goes_is_gone_at_once_and_its_successor_is_there_at_the_next_read() -> None:
    shelf = Shelf("a", "b")
    shelf.shown()
    shelf.names[:] = ["a", "c"]
    assert [shelf.shown(), shelf.shown()] == [["a"], ["a", "c"]]


def test_a_device_that_never_shows_anything_does_not_make_every_read_a_search() -> None:
    listing: Listing[str] = Listing(lambda: 0)
    looks = []
    for _ in range(5):
        listing.samples(lambda: looks.append(0) or ["dead"], lambda _: None)  # type: ignore[func-returns-value]
    assert len(looks) == 1


def test_names_that_no_table_could_hold_are_left_out(tmp_path: Path) -> None:
    for name in ("mlx5_0", "hfi1_0", "evil\nname", "x" * 201):
        (tmp_path / name).touch()
    assert names_in(str(tmp_path)) == ["hfi1_0", "mlx5_0"]


def test_a_folder_that_must_be_there_is_named_and_one_that_need_not_is_empty(tmp_path: Path) -> None:
    missing = str(tmp_path / "missing")
    assert names_if_any(missing) == []
    with pytest.raises(UnavailableError, match="missing: No such file or directory"):
        names_in(missing)
