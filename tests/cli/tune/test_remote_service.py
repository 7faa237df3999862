"""The service of a server, held to what every service promises; the server runs in a thread and its clock is set."""

import time
from collections.abc import Iterator
from dataclasses import dataclass

import pytest
from tests.models.tuner.service.growth_contract import GrowthContract
from tests.models.tuner.service.life_contract import LifeContract
from tests.models.tuner.service.reports_contract import ReportsContract
from tests.models.tuner.service.service_contract import STUDY, StudyServiceContract
from tests.models.tuner.service.state_contract import StateContract
from tests.models.tuner.service.test_catalog_service import Clock
from tests.serving import running

from crosswind.api.app import create_app
from crosswind.api.server import listen, server_of
from crosswind.api.settings import ServerSettings
from crosswind.client.http import Server
from crosswind.client.local import Local
from crosswind.client.remote_studies import RemoteStudyService
from crosswind.data.catalog.tables import metadata
from crosswind.data.store.store import Store
from crosswind.models.tuner.service.catalog import CatalogStudyService


@pytest.fixture
def clock() -> Clock:
    """A server tells itself when a study was created."""
    clock = Clock()
    clock.ns = time.time_ns()
    return clock


@dataclass
class Serving:
    """A server, and the client of its store with the service that answers."""

    url: str
    client: Local


@pytest.fixture(scope="module")
def serving(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Serving]:
    """One server for all tests."""
    with Store.open(tmp_path_factory.mktemp("home")) as store, listen(ServerSettings(port=0)) as listening:
        app = create_app(store)
        serving = Serving(f"http://127.0.0.1:{listening.getsockname()[1]}", app.state.client)
        server = server_of(app)
        with running(server, listening):
            while not server.started:
                time.sleep(0.01)
            yield serving


@pytest.fixture
def service(serving: Serving, clock: Clock) -> RemoteStudyService:
    """A service over an empty catalog that holds STUDY."""
    catalog = serving.client.store.catalog
    with catalog.engine.begin() as connection:
        for table in reversed(metadata.sorted_tables):
            connection.execute(table.delete())
    serving.client.studies = CatalogStudyService(catalog, clock=clock)
    serving.client.studies.create(STUDY)
    return RemoteStudyService(Server(serving.url))


class TestRemoteStudyService(StudyServiceContract, ReportsContract, GrowthContract, LifeContract, StateContract):
    """The promises of every service, over HTTP."""
