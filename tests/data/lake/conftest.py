import uuid
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from tests.data.lake.objects.store_of_objects import Faults, address_of, asked, faulty_proxy, s3_server

from crosswind.data.schema.lake_address import LakeAddress
from crosswind.data.store.store import Store


@pytest.fixture(scope="session")
def s3_port() -> Iterator[int]:
    with s3_server() as port:
        yield port


@pytest.fixture
def address(s3_port: int) -> LakeAddress:
    """An empty bucket."""
    bucket = f"b{uuid.uuid4().hex}"
    asked(s3_port, "PUT", f"/{bucket}")
    return address_of(s3_port, bucket)


@pytest.fixture
def database(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    """The URL of an empty catalog; of PostgreSQL where a test asks for it."""
    if getattr(request, "param", "") == "postgresql":
        url: str = request.getfixturevalue("postgres_url")
        return url
    return f"sqlite:///{tmp_path / 'catalog.sqlite'}"


@pytest.fixture
def store(address: LakeAddress, database: str, tmp_path: Path) -> Iterator[Store]:
    with Store.open(tmp_path / "home", database=database, lake=address) as opened:
        yield opened


@pytest.fixture
def another(address: LakeAddress, database: str, tmp_path: Path) -> Iterator[Callable[[], Store]]:
    """Opens further stores, each with a folder of its own, over the catalog of the first."""
    opened: list[Store] = []

    def make() -> Store:
        opened.append(Store.open(tmp_path / f"other-{len(opened)}", database=database, lake=address))
        return opened[-1]

    yield make
    for one in opened:
        one.close()


@pytest.fixture
def proxied(s3_port: int, address: LakeAddress) -> Iterator[tuple[LakeAddress, Faults]]:
    """The address of the bucket behind a proxy, and the proxy's faults."""
    with faulty_proxy(s3_port) as (port, faults):
        yield address_of(port, address.bucket), faults
