"""Questions to a provider over HTTP; apart from the rest because TLS takes a while to load."""

import json
from collections.abc import Mapping
from http.client import HTTPException
from typing import Any
from urllib.error import HTTPError
from urllib.request import HTTPRedirectHandler, Request, build_opener

from crosswind.api.access.caller import UnauthorizedError
from crosswind.data.schema.errors import UnavailableError

TIMEOUT_SECONDS = 5.0
ANSWER_BYTES = 1024 * 1024


class _NoRedirect(HTTPRedirectHandler):
    def redirect_request(self, *_arguments: object, **_words: object) -> None:
        """Follow none: what is secret goes to the address that was checked."""


def ask(name: str, address: str, headers: Mapping[str, str], form: bytes | None) -> dict[str, Any]:
    """Return the JSON object at an address, or what comes of a form with a code; errors call the provider `name`.

    Raises: UnavailableError; UnauthorizedError where the provider takes the form for a wrong one.
    """
    request = Request(address, form, {"Accept": "application/json", **headers})  # noqa: S310 - checked by is_safe
    try:
        with build_opener(_NoRedirect).open(request, timeout=TIMEOUT_SECONDS) as answer:
            content = answer.read(ANSWER_BYTES + 1)
            value = json.loads(content) if len(content) <= ANSWER_BYTES else None
    except HTTPError as error:
        with error:
            if form and error.code in (400, 401):
                raise UnauthorizedError(f"{name} takes the code for none of its own: {_reason(error)}") from error
        raise UnavailableError(f"{name} answers with status {error.code}") from error
    except (OSError, HTTPException, ValueError) as error:
        raise UnavailableError(f"{name} does not answer: {getattr(error, 'reason', error)}") from error
    if not isinstance(value, dict):
        raise UnavailableError(f"{name} answers what is no JSON object of up to {ANSWER_BYTES} B")
    return value


def _reason(error: HTTPError) -> str:
    """Return the error's code of an answer, which has none of the secrets that a description may repeat."""
    try:
        value: Mapping[str, object] = json.loads(error.read(ANSWER_BYTES))
        return str(value["error"])[:80]
    except (ValueError, KeyError, TypeError, OSError):
        return "no reason"
