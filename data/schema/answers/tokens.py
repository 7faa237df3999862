"""Tokens as they are listed; nothing in them lets anybody in."""

from dataclasses import dataclass, field

from crosswind.data.schema.access import Principal, TokenUse
from crosswind.data.schema.answers.fields import about, fill_texts, text_of


@dataclass(frozen=True, kw_only=True)
class Token:
    """A token: whom it stands for, and until when. Its secret is stored nowhere."""

    token_id: str
    principal: Principal
    use: TokenUse
    created_by: str
    created_at: str | None = field(default=None, metadata=text_of("created_ns"))
    created_ns: int
    expires_at: str | None = field(default=None, metadata=text_of("expires_ns"))
    expires_ns: int
    revoked_at: str | None = field(default=None, metadata=text_of("revoked_ns"))
    revoked_ns: int | None = None
    used_at: str | None = field(default=None, metadata=text_of("used_ns"))
    used_ns: int | None = field(default=None, metadata=about("the last use, to ten minutes"))
    parent_id: str | None = field(default=None, metadata=about("the token that made it; revoked with that one"))

    def __post_init__(self) -> None:
        fill_texts(self)

    def refusal(self, now_ns: int) -> str | None:
        """Return why the token lets nobody in now; None while it does."""
        if self.revoked_ns is not None:
            return "the token was revoked"
        return "the token has expired" if now_ns >= self.expires_ns else None


@dataclass(frozen=True, kw_only=True)
class IssuedToken:
    """A new token with its secret, which is shown this once."""

    secret: str
    token: Token
