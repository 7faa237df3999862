"""Notices of deprecated operations."""

from datetime import UTC, datetime

import pytest
from fastapi import FastAPI
from starlette.testclient import TestClient

from crosswind.api.access.scopes import NEEDS
from crosswind.api.delivery.deprecation import DEPRECATED, Deprecated, Notices
from crosswind.data.schema.errors import InvalidInputError

SINCE, SUNSET = datetime(2026, 1, 1, tzinfo=UTC), datetime(2026, 7, 1, tzinfo=UTC)


def test_a_deprecated_operation_says_since_when_until_when_and_what_to_use() -> None:
    app = FastAPI()
    app.add_api_route("/old/{name}", lambda name: name, methods=["GET"])
    app.add_api_route("/new", lambda: "new", methods=["GET"])
    app.add_middleware(Notices, deprecated={"GET /old/{name}": Deprecated(SINCE, SUNSET, "/changes#old")})
    client = TestClient(app)
    headers = client.get("/old/x").headers
    assert (headers["deprecation"], headers["sunset"]) == ("@1767225600", "Wed, 01 Jul 2026 00:00:00 GMT")
    assert headers["link"] == '</changes#old>; rel="deprecation"; type="text/html"'
    assert "deprecation" not in client.get("/new").headers


def test_less_notice_than_is_promised_is_refused() -> None:
    with pytest.raises(InvalidInputError, match="expected 180 days after 2026-01-01"):
        Deprecated(SINCE, datetime(2026, 3, 1, tzinfo=UTC), "/x")


def test_only_operations_that_exist_are_deprecated() -> None:
    assert DEPRECATED.keys() <= NEEDS.keys()
