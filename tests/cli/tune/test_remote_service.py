"""The service of a server, held to what every service promises; the server runs in a thread and its clock is set."""

import threading
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.models.tuner.service.growth_contract import GrowthContract
from tests.models.tuner.service.life_contract import LifeContract
from tests.models.tuner.service.reports_contract import ReportsContract
from tests.models.tuner.service.service_contract import STUDY, StudyServiceContract
from tests.models.tuner.service.state_contract import StateContract
from tests.models.tuner.service.test_catalog_service import Clock

from crosswind.api.app import create_app
from crosswind.api.dependencies import study_service_of
from crosswind.api.server import listen, server_of
from crosswind.api.settings import ServerSettings
from crosswind.client.http import Server
from crosswind.client.remote_studies import RemoteStudyService
from crosswind.data.store.store import Store
from crosswind.models.tuner.service.catalog import CatalogStudyService


@pytest.fixture
def clock() -> Clock:
    """A server tells itself when a study was created."""
    clock = Clock()
    clock.ns = time.time_ns()
    return clock


@pytest.fixture
def service(tmp_path: Path, clock: Clock) -> Iterator[RemoteStudyService]:
    with Store.open(tmp_path / "home") as store, listen(ServerSettings(port=0)) as listening:
        behind = CatalogStudyService(store.catalog, clock=clock)
        behind.create(STUDY)

        async def same_service() -> CatalogStudyService:
            return behind

        app = create_app(store)
        app.dependency_overrides[study_service_of] = same_service
        server = server_of(app)
        thread = threading.Thread(target=server.run, kwargs={"sockets": [listening]})
        thread.start()
        while not server.started:
            time.sleep(0.01)
        yield RemoteStudyService(Server(f"http://127.0.0.1:{listening.getsockname()[1]}"))
        server.should_exit = True
        thread.join(30)


class TestRemoteStudyService(StudyServiceContract, ReportsContract, GrowthContract, LifeContract, StateContract):
    """The promises of every service, over HTTP."""
