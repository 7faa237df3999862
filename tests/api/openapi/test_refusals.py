"""Every refusal that the description names comes, with one of its types; those that need no special store or load."""

from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

import httpx2
import pytest
from fastapi import FastAPI
from starlette.testclient import TestClient
from tests.api.access.issuing import ANNA, bearer, issued, stranger
from tests.serving import own_client

from crosswind.api.access.scopes import NEEDS
from crosswind.api.app import create_app
from crosswind.api.openapi.examples import Example, examples, folder
from crosswind.api.openapi.operation import operations
from crosswind.api.openapi.refusals import CONFLICTS, NAMED_IN_QUESTIONS, QUOTAS, kinds_of
from crosswind.api.problems import KINDS
from crosswind.data.schema.access import Principal, Scope
from crosswind.data.store.store import Store

NONE = "none-such"
OTHER_HOST = {"Host": "elsewhere.example"}
"""Name that nothing has."""
FIRST = {example.operation: example for example in reversed([*examples()])}
BY_THE_EDGE = frozenset({408, 414, 429, 431, 503})  # tests/api/edge, test_workers.py, test_own_rows.py


@pytest.fixture(scope="module")
def app(tmp_path_factory: pytest.TempPathFactory) -> Iterator[FastAPI]:
    with Store.open(tmp_path_factory.mktemp("refusals")) as store:
        yield create_app(store)


@pytest.fixture(scope="module")
def client(app: FastAPI) -> Iterator[TestClient]:
    with own_client(app) as opened:
        yield opened
