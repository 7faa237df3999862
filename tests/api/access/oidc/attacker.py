"""A provider on loopback that does what a test wants: right by default, wrong in one way at a time."""

import base64
import hashlib
import hmac
import json
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import parse_qs, urlsplit

from joserfc import jwt
from joserfc.jwk import KeySet, RSAKey

CLIENT, SECRET = "crosswind", "a client's secret of 32 characters"
Claims = dict[str, Any]


def unsigned(_provider: "Provider", claims: Claims) -> str:
    """Return a token that says that it needs no signature."""
    parts = ({"alg": "none", "typ": "JWT"}, claims)
    return ".".join(base64.urlsafe_b64encode(json.dumps(part).encode()).rstrip(b"=").decode() for part in parts) + "."


def signed_by_public_key(provider: "Provider", claims: Claims) -> str:
    """Return a token whose secret is the public key that everybody can read (HS256 in place of RS256)."""
    parts = ({"alg": "HS256", "typ": "JWT", "kid": provider.key.kid}, claims)
    text = ".".join(base64.urlsafe_b64encode(json.dumps(part).encode()).rstrip(b"=").decode() for part in parts)
    digest = hmac.digest(provider.key.as_pem(private=False), text.encode(), "sha256")
    return f"{text}.{base64.urlsafe_b64encode(digest).rstrip(b'=').decode()}"


def signed_by_another(provider: "Provider", claims: Claims) -> str:
    """Return a token by a key that calls itself the provider's."""
    other = RSAKey.generate_key(2048, parameters={"kid": provider.key.kid})
    return jwt.encode({"alg": "RS256", "kid": provider.key.kid}, claims, other)


def signed(provider: "Provider", claims: Claims) -> str:
    """Return a right token."""
    return jwt.encode({"alg": "RS256", "kid": provider.key.kid}, claims, provider.key)


@dataclass
class Provider:
    """Answers and acts of the provider; `claims` are added to those of every ID token, None removes one."""

    url: str
    key: RSAKey
    claims: Claims = field(default_factory=lambda: {"preferred_username": "anna", "groups": ["physics"]})
    metadata: Claims = field(default_factory=dict)
    user_facts: Claims = field(default_factory=dict)
    sign: Callable[["Provider", Claims], str] = signed
    asked: list[str] = field(default_factory=list)
    codes: dict[str, Mapping[str, str]] = field(default_factory=dict)
    status: int = 200

    def authorize(self, address: str) -> Mapping[str, str]:
        """Return what the browser brings back from this address, as if its user had logged in."""
        query = {name: values[0] for name, values in parse_qs(urlsplit(address).query, strict_parsing=True).items()}
        assert (query["response_type"], query["client_id"], query["code_challenge_method"]) == ("code", CLIENT, "S256")
        code = f"code-{len(self.codes)}"
        self.codes[code] = query
        return {"code": code, "state": query["state"]}

    def answer(self, path: str, form: Mapping[str, str], headers: Mapping[str, str]) -> tuple[int, object]:
        """Return status and document for a request."""
        self.asked.append(path)
        if self.status != 200:
            return self.status, {"error": "temporarily_unavailable"}
        if path == "/.well-known/openid-configuration":
            named = {"authorization_endpoint": "/authorize", "token_endpoint": "/token", "jwks_uri": "/keys"}
            places = {name: self.url + place for name, place in named.items()}
            facts = {"issuer": self.url, "id_token_signing_alg_values_supported": ["RS256", "HS256", "none"]}
            return 200, places | facts | {"userinfo_endpoint": f"{self.url}/userinfo"} | self.metadata
        if path == "/keys":
            return 200, KeySet([self.key]).as_dict(private=False)
        if path == "/userinfo":
            return (200, self.user_facts) if headers.get("Authorization") == "Bearer at-1" else (401, {})
        return self._token(form, headers)

    def _token(self, form: Mapping[str, str], headers: Mapping[str, str]) -> tuple[int, object]:
        expected = base64.b64encode(f"{CLIENT}:{SECRET.replace(' ', '%20').replace(chr(39), '%27')}".encode()).decode()
        begun = self.codes.pop(form.get("code", ""), None)  # each code once
        if headers.get("Authorization") != f"Basic {expected}":
            return 401, {"error": "invalid_client"}
        digest = hashlib.sha256(form.get("code_verifier", "").encode()).digest()
        challenge = base64.urlsafe_b64encode(digest).rstrip(b"=").decode()
        is_right = begun and (begun["code_challenge"], begun["redirect_uri"]) == (challenge, form["redirect_uri"])
        if not begun or not is_right:
            return 400, {"error": "invalid_grant"}
        now = int(time.time())
        claims = {"iss": self.url, "sub": "s1", "aud": CLIENT, "iat": now, "exp": now + 300, "nonce": begun["nonce"]}
        claims = {name: value for name, value in (claims | self.claims).items() if value is not None}
        return 200, {"access_token": "at-1", "token_type": "Bearer", "id_token": self.sign(self, claims)}


@contextmanager
def provider_at_loopback(key: RSAKey) -> Iterator[Provider]:
    """Yield a provider that answers at its URL."""

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            self._answer({})

        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers["Content-Length"])).decode()
            self._answer({name: values[0] for name, values in parse_qs(body).items()})

        def _answer(self, form: Mapping[str, str]) -> None:
            status, document = provider.answer(self.path, form, self.headers)  # type: ignore[arg-type]
            body = json.dumps(document).encode()
            self.send_response(status)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *_arguments: object) -> None:
            pass

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        provider = Provider(f"http://127.0.0.1:{server.server_port}", key)
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02})
        thread.start()
        yield provider
        server.shutdown()
        thread.join()
