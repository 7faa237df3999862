import functools
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from tests.serving import answering

from crosswind import tune

SPACE = {"batch": [8, 16, 32, 64], "workers": range(0, 9, 2)}
Open = Callable[..., tune.Study]


@pytest.fixture(autouse=True)
def own_home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("CROSSWIND_SERVER", "CROSSWIND_TUNE_FOLDER", "CROSSWIND_DATABASE"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("CROSSWIND_HOME", str(tmp_path / "home"))
    monkeypatch.setenv("CROSSWIND_SPOOL", str(tmp_path / "spool"))


@pytest.fixture(params=["home", "folder", "server"])
def place(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[dict[str, Any]]:
    """Yield the words that name a place: the store, a shared folder, a server."""
    if request.param == "server":
        with answering(tmp_path / "server") as url:
            yield {"server": url}
    else:
        yield {request.param: tmp_path / "studies"}


@pytest.fixture
def open_study(place: dict[str, Any]) -> Iterator[Open]:
    """Yield what opens studies in that place; they are closed after the test."""
    opened: list[tune.Study] = []

    def open_one(*words: Any, **fields: Any) -> tune.Study:
        opened.append(functools.partial(tune.study, *words, **place)(**fields))
        return opened[-1]

    yield open_one
    for study in opened:
        study.close()
