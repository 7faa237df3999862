"""Settings of the login at an OpenID Connect provider, as a TOML file has them."""

import os
from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from importlib.util import find_spec
from pathlib import Path
from typing import Any, Self
from urllib.parse import urlsplit

from crosswind.data.schema.access import Role
from crosswind.data.schema.errors import InvalidInputError

SECRET = "CROSSWIND_OIDC_SECRET"  # noqa: S105 - the name of a variable
LOOPBACK = frozenset({"localhost", "127.0.0.1", "::1"})


@dataclass(frozen=True)
class OidcSettings:
    """The provider, this server as its client, and which claims say who somebody is.

    `server_url` is the address at which browsers reach this server, with the prefix of a proxy. `user_claim` holds the
    login name; people must not be able to change it at the provider. With `allowed_groups`, nobody else is let in.
    `roles` give those of a group the role `support` or `admin`. `accounts_claim` lists accounts.
    """

    issuer: str
    client_id: str
    server_url: str
    client_secret: str | None = field(default=None, repr=False)
    label: str = ""
    scopes: tuple[str, ...] = ("openid", "profile")
    user_claim: str = "preferred_username"
    groups_claim: str = "groups"
    accounts_claim: str | None = None
    allowed_groups: tuple[str, ...] = ()
    roles: Mapping[str, Role] = field(default_factory=dict)

    def __post_init__(self) -> None:
        for name in ("issuer", "server_url"):
            if not is_safe(address := getattr(self, name)):
                raise InvalidInputError(f"{name} {address!r:.80}: expected https://..., or http:// on this machine")
        if "openid" not in self.scopes:
            raise InvalidInputError(f"scopes {list(self.scopes)!r:.80}: expected `openid` among them")

    @property
    def shown(self) -> str:
        """Name of the provider on the login page."""
        return self.label or str(urlsplit(self.issuer).hostname)

    @property
    def redirect_url(self) -> str:
        """Address to which the provider sends a browser back to, which it must know."""
        return f"{self.server_url.rstrip('/')}/login/oidc/callback"

    @property
    def is_over_tls(self) -> bool:
        """Return whether browsers reach this server over TLS."""
        return self.server_url.startswith("https:")

    @property
    def host(self) -> str:
        """The name of this server, with its port, as browsers know it."""
        return urlsplit(self.server_url).netloc

    @classmethod
    def load(cls, path: Path, environment: Mapping[str, str] = os.environ) -> Self:
        """Read a file. The secret comes from CROSSWIND_OIDC_SECRET, or from the file that `client_secret_file` names.

        Raises: InvalidInputError naming the field.
        """
        import tomllib  # noqa: PLC0415 - where there is a file alone

        try:
            document = tomllib.loads(path.read_text("utf-8"))
            if find_spec("authlib") is None:
                raise InvalidInputError("login at a provider needs Authlib: pip install 'crosswind[oidc]'")
            secret = _secret_in(document.pop("client_secret_file", None), environment)
            return cls(**_checked(document), client_secret=secret)
        except (OSError, UnicodeDecodeError, tomllib.TOMLDecodeError) as error:
            raise InvalidInputError(f"{path}: {error}") from error
        except InvalidInputError as error:
            raise InvalidInputError(f"{path}: {error}") from error


def is_safe(address: object) -> bool:
    """Return whether nobody between can read or change what goes to this address."""
    try:
        parts = urlsplit(str(address))
        host = parts.hostname
    except ValueError:
        return False
    return bool(host) and (parts.scheme == "https" or (parts.scheme == "http" and host in LOOPBACK))


def _secret_in(path: object, environment: Mapping[str, str]) -> str | None:
    if secret := environment.get(SECRET):
        return secret
    return None if path is None else Path(str(path)).read_text("utf-8").strip() or None


def _checked(document: dict[str, Any]) -> dict[str, Any]:
    settings = {part.name: part for part in fields(OidcSettings) if part.name != "client_secret"}
    if unknown := sorted(document.keys() - settings.keys()):
        raise InvalidInputError(
            f"{unknown[0]!r:.80} is no setting: expected {', '.join(settings)} or client_secret_file"
        )
    for name in ("issuer", "client_id", "server_url"):
        if name not in document:
            raise InvalidInputError(f"{name}: expected a text")
    return {name: _value(name, value) for name, value in document.items()}


def _value(name: str, value: object) -> object:
    if name == "roles":
        return _roles(value)
    if name in ("scopes", "allowed_groups"):
        if not isinstance(value, list) or not all(isinstance(part, str) for part in value):
            raise InvalidInputError(f"{name} {value!r:.80}: expected a list of texts")
        return tuple(value)
    if not isinstance(value, str) or not value:
        raise InvalidInputError(f"{name} {value!r:.80}: expected a text")
    return value


def _roles(value: object) -> Mapping[str, Role]:
    if not isinstance(value, dict):
        raise InvalidInputError(f"roles {value!r:.80}: expected a table of groups with their roles")
    for group, role in value.items():
        if role not in (Role.SUPPORT, Role.ADMIN):
            raise InvalidInputError(f"roles.{group}: {role!r:.80}, expected support or admin")
    return {group: Role(role) for group, role in value.items()}
