"""A login that has begun: what the provider must bring back, kept by the browser that began it."""

import base64
import hashlib
import hmac
import json
import secrets
import time
from dataclasses import asdict, dataclass
from typing import Self
from urllib.parse import urlencode

from crosswind.api.access.oidc.provider import Provider

COOKIE = "crosswind_login"
SECONDS = 600
NEXT_CHARACTERS = 1000


@dataclass(frozen=True)
class Pending:
    """Random texts that bind a provider's answer to this browser (state), its ID token (nonce) and its code (verifier).

    They are in a cookie that only this browser sends, and no page can read, so that the server has nothing to remember.
    """

    state: str
    nonce: str
    verifier: str
    next: str
    began: float  # seconds since 1970

    @classmethod
    def new(cls, wanted: str) -> Self:
        """Return a new one, after which `wanted` is to be shown."""
        state, nonce, verifier = (secrets.token_urlsafe(32) for _ in range(3))
        return cls(state, nonce, verifier, wanted[:NEXT_CHARACTERS], time.time())

    @classmethod
    def of_cookie(cls, text: str) -> Self | None:
        """Return what a cookie holds; None if that is none of ours."""
        try:
            facts = json.loads(base64.urlsafe_b64decode(text))
            pending = cls(**facts)
        except (ValueError, TypeError):
            return None
        texts = (pending.state, pending.nonce, pending.verifier)
        is_ours = all(isinstance(part, str) and len(part) >= 32 for part in texts)
        return pending if is_ours and isinstance(pending.next, str) and isinstance(pending.began, float) else None

    def cookie(self) -> str:
        """Return the cookie's text."""
        return base64.urlsafe_b64encode(json.dumps(asdict(self)).encode()).decode()

    def is_answered_by(self, state: str) -> bool:
        """Return whether an answer with this state belongs to this login, and comes in time."""
        is_same = hmac.compare_digest(self.state.encode(), state.encode("utf-8", "replace"))
        return is_same and abs(time.time() - self.began) <= SECONDS  # begun at a server whose clock may be ahead

    def address(self, provider: Provider) -> str:
        """Return where the browser is to log in. Raises: UnavailableError.

        Source: OpenID Connect Core 1.0, section 3.1.2.1; RFC 7636 (PKCE), section 4.3.
        """
        settings, endpoint = provider.settings, provider.metadata()["authorization_endpoint"]
        digest = hashlib.sha256(self.verifier.encode()).digest()
        query = {
            "response_type": "code",
            "client_id": settings.client_id,
            "redirect_uri": settings.redirect_url,
            "scope": " ".join(settings.scopes),
            "state": self.state,
            "nonce": self.nonce,
            "code_challenge": base64.urlsafe_b64encode(digest).rstrip(b"=").decode(),
            "code_challenge_method": "S256",
        }
        return f"{endpoint}{'&' if '?' in endpoint else '?'}{urlencode(query)}"
