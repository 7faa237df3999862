"""The provider: its metadata, its keys, and the exchange of a code for an ID token."""

import base64
import time
from collections.abc import Callable, Mapping
from threading import Lock
from types import MappingProxyType
from typing import Any
from urllib.parse import quote, urlencode

from anyio import CapacityLimiter

from crosswind.api.observe.correlation import current
from crosswind.api.oidc_settings import OidcSettings, is_safe
from crosswind.data.schema.errors import UnavailableError

FRESH_SECONDS = 3600.0  # of metadata and keys
SILENT_SECONDS = 60.0  # after an error, for the same one
KEYS_PAUSE_SECONDS = 5.0  # between two looks for a key that is not among those we have
CREATED_BY = "oidc "  # begins the name of who created a session
AT_ONCE = 4  # questions to a provider, which may be slow: they must not keep other threads busy
ENDPOINTS = ("authorization_endpoint", "token_endpoint", "jwks_uri")
NO_HEADERS: Mapping[str, str] = MappingProxyType({})
Json = dict[str, Any]


class Provider:
    """One provider. What it answered is kept for an hour, and a failure is not. `clock` returns seconds."""

    def __init__(self, settings: OidcSettings, clock: Callable[[], float] = time.monotonic) -> None:
        self.settings = settings
        self._clock = clock
        self._lock = Lock()
        self._metadata: tuple[float, Json] | None = None
        self._keys: tuple[float, Json] | None = None
        self._failed = 0.0, ""
        self.places = CapacityLimiter(AT_ONCE)

    def metadata(self) -> Json:
        """Return the provider's metadata. Raises: UnavailableError.

        Source: OpenID Connect Discovery 1.0, section 4.
        """
        with self._lock:
            if self._metadata is None or self._clock() - self._metadata[0] > FRESH_SECONDS:
                self._metadata = self._clock(), self._discover()
            return self._metadata[1]

    def is_news(self, error: UnavailableError) -> bool:
        """Return whether to log this error: another one than before, or a minute later."""
        now, (at, before) = self._clock(), self._failed
        if str(error) == before and now - at < SILENT_SECONDS:
            return False
        self._failed = now, str(error)
        return True

    @property
    def begin_url(self) -> str:
        """Address where a login begins: at the host to which the provider sends back, as cookies belong to one."""
        return f"{self.settings.server_url.rstrip('/')}/login/oidc"

    def began(self, created_by: str) -> bool:
        """Return whether a session with this maker was begun at the provider."""
        return created_by == self.maker

    @property
    def maker(self) -> str:
        """Name of the maker of this provider's sessions."""
        return f"{CREATED_BY}{self.settings.issuer}"

    @property
    def known_metadata(self) -> Json:
        """The metadata if they are here already, or nothing."""
        return self._metadata[1] if self._metadata else {}

    def keys(self, *, newer: bool = False) -> Json:
        """Return the provider's public keys; `newer` asks for them again, because a key was not among them.

        Raises: UnavailableError.
        """
        address = self.metadata()["jwks_uri"]
        with self._lock:
            age = self._clock() - self._keys[0] if self._keys else FRESH_SECONDS
            if self._keys is None or age >= (KEYS_PAUSE_SECONDS if newer else FRESH_SECONDS):
                self._keys = self._clock(), self._ask(address)
            return self._keys[1]

    def tokens_for(self, code: str, verifier: str) -> Json:
        """Return what the provider gives for a code. Raises: UnauthorizedError, UnavailableError."""
        metadata, settings = self.metadata(), self.settings
        fields = {
            "grant_type": "authorization_code",
            "code": code,
            "redirect_uri": settings.redirect_url,
            "code_verifier": verifier,
            "client_id": settings.client_id,
        }
        headers = {}
        if settings.client_secret is not None:
            if "client_secret_basic" in metadata.get("token_endpoint_auth_methods_supported", ["client_secret_basic"]):
                headers["Authorization"] = _basic(settings.client_id, settings.client_secret)
            else:
                fields["client_secret"] = settings.client_secret
        return self._ask(metadata["token_endpoint"], headers, urlencode(fields).encode())

    def user_facts(self, access_token: str) -> Json:
        """Return the claims that the provider has beyond those of an ID token. Raises: UnavailableError."""
        if not is_safe(address := self.metadata().get("userinfo_endpoint")):
            return {}
        return self._ask(str(address), {"Authorization": f"Bearer {access_token}"})

    def logout_url(self) -> str | None:
        """Return where the provider's own session ends; None where it has no such place, or does not answer.

        Source: OpenID Connect RP-Initiated Logout 1.0, section 2.
        """
        try:
            address = self.metadata().get("end_session_endpoint")
        except UnavailableError:
            return None
        if not is_safe(address):
            return None
        back = f"{self.settings.server_url.rstrip('/')}/login"
        query = urlencode({"client_id": self.settings.client_id, "post_logout_redirect_uri": back})
        return f"{address}{'&' if '?' in str(address) else '?'}{query}"

    def _discover(self) -> Json:
        issuer = self.settings.issuer
        metadata = self._ask(f"{issuer.rstrip('/')}/.well-known/openid-configuration")
        if metadata.get("issuer") != issuer:
            raise UnavailableError(f"{issuer} says that it is {metadata.get('issuer')!r:.200}")
        for name in ENDPOINTS:
            if not is_safe(metadata.get(name)):
                raise UnavailableError(f"{issuer} has {name} {metadata.get(name)!r:.200}: expected https://...")
        return metadata

    def _ask(self, address: str, headers: Mapping[str, str] = NO_HEADERS, form: bytes | None = None) -> Json:
        from crosswind.api.access.oidc.asking import ask  # noqa: PLC0415 - TLS, when somebody logs in

        correlation = current()
        trace = {} if correlation is None else {"traceparent": correlation.traceparent}
        return ask(self.settings.shown, address, {**trace, **headers}, form)


def _basic(client_id: str, secret: str) -> str:
    """Return the client's credentials, form-encoded first (RFC 6749, section 2.3.1)."""
    pair = ":".join(quote(part, safe="") for part in (client_id, secret))
    return f"Basic {base64.b64encode(pair.encode()).decode()}"
