"""The desk of a server, held to what every desk promises; the server runs in a thread, where its clock can be told."""

import threading
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.models.test_study_desk import Clock
from tests.models.tuner.desks_contract import STUDY, DeskContract

from crosswind.api.app import create_app
from crosswind.api.server import listen, server_of
from crosswind.api.settings import ServerSettings
from crosswind.api.stored import desk_of
from crosswind.cli.tune.remote import RemoteDesk
from crosswind.data.store.store import Store
from crosswind.models.tuner.desk import StudyDesk


@pytest.fixture
def clock() -> Clock:
    """A server tells itself when a study was created."""
    clock = Clock()
    clock.ns = time.time_ns()
    return clock


@pytest.fixture
def desk(tmp_path: Path, clock: Clock) -> Iterator[RemoteDesk]:
    with Store.open(tmp_path / "home") as store, listen(ServerSettings(port=0)) as listening:
        behind = StudyDesk(store.catalog, clock=clock)
        behind.create(STUDY)

        async def same_desk() -> StudyDesk:
            return behind

        app = create_app(store)
        app.dependency_overrides[desk_of] = same_desk
        server = server_of(app)
        thread = threading.Thread(target=server.run, kwargs={"sockets": [listening]})
        thread.start()
        while not server.started:
            time.sleep(0.01)
        yield RemoteDesk(f"http://127.0.0.1:{listening.getsockname()[1]}")
        server.should_exit = True
        thread.join(30)


class TestRemoteDesk(DeskContract):
    """The promises of every desk, over HTTP."""
