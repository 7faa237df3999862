"""Settings of the server."""

import ipaddress
import re
from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path

from crosswind.api.edge.limits import Limits
from crosswind.api.oidc_settings import OidcSettings
from crosswind.data.schema.access import AUDIT_KEPT_DAYS
from crosswind.data.schema.batch import REMEMBERED_DAYS
from crosswind.data.schema.carbon import CarbonIntensity
from crosswind.data.schema.errors import InvalidInputError
from crosswind.data.schema.keeping import EVERYTHING, KeepPolicy

LOOPBACK_NAMES = frozenset({"localhost", "127.0.0.1", "[::1]"})
TOKEN_CHARACTERS = 16  # fewer could be guessed; `openssl rand -hex 32` gives 64


@dataclass(frozen=True)
class ServerSettings:
    """The address on which the server listens, and who may call it.

    `root_path` is the prefix under which a proxy shows the server. `hosts` are the names by which a request may
    address the server, besides those of the loopback interface; without any, a server that listens elsewhere takes
    every name. With `uds`, a path, it listens on that Unix socket alone, which only its owner may open unless
    `uds_mode` opens it to others. With `require_token`, also the server's own user needs a token. `trusted_proxy` is
    the proxy whose `user_header` names who asks: ADDRESS, ADDRESS@USER or unix@USER. `oidc` is where people log in.
    `intensity` turns energy into carbon.
    """

    host: str = "127.0.0.1"
    port: int = 8000
    token: str | None = None
    root_path: str = ""
    hosts: tuple[str, ...] = ()
    uds: Path | None = None
    uds_mode: int = 0o600
    require_token: bool = False
    trusted_proxy: str | None = None
    user_header: str = "X-Forwarded-User"
    body_bytes: int = 1024 * 1024
    batch_bytes: int = 16 * 1024 * 1024  # of a segment as sent
    segment_bytes: int = 64 * 1024 * 1024  # of a segment unpacked
    rejected_bytes: int = 256 * 1024 * 1024  # of segments kept in quarantine because they were understood only in part
    intensity: CarbonIntensity | None = None
    audit_days: int = AUDIT_KEPT_DAYS  # after which entries of the audit trail are forgotten
    batch_days: int = REMEMBERED_DAYS  # after which batches are forgotten
    kept: KeepPolicy = EVERYTHING  # of samples of nodes
    quota_bytes: int | None = None  # that the tokens of one user may send in a day; None for no limit
    oidc: OidcSettings | None = None
    limits: Limits = field(default_factory=Limits)
    webhook_networks: tuple[ipaddress.IPv4Network | ipaddress.IPv6Network, ...] = ()  # allowed besides public addresses

    def __post_init__(self) -> None:
        if not 0 <= self.port <= 65535:
            raise InvalidInputError(f"port {self.port}: expected 0 (any free one) to 65535")
        if self.root_path and (not self.root_path.startswith("/") or self.root_path.endswith("/")):
            raise InvalidInputError(f"root path {self.root_path!r}: expected a form such as /node/gpu07/8000")
        if self.token is not None and not is_token(self.token):
            raise InvalidInputError(
                f"token: expected at least {TOKEN_CHARACTERS} visible ASCII characters, as `openssl rand -hex 32` gives"
            )
        if not re.fullmatch(r"[!#$%&'*+.^_`|~0-9A-Za-z-]+", self.user_header):
            raise InvalidInputError(f"user header {self.user_header!r:.80}: expected the name of a header field")
        if not self.uds_mode & 0o600 == 0o600 or self.uds_mode > 0o777:
            raise InvalidInputError(f"mode {self.uds_mode:o} of the socket: expected such as 600, 660 or 666")
        if self.oidc is not None and not self.oidc.server_url.rstrip("/").endswith(self.root_path):
            raise InvalidInputError(
                f"server_url {self.oidc.server_url!r:.99}: expected it to end with {self.root_path}"
            )
        if self.token is None and not self.is_loopback:
            raise InvalidInputError(
                f"host {self.host!r} can be reached from other machines: set a token (CROSSWIND_TOKEN), "
                "or listen on 127.0.0.1 and use an SSH tunnel"
            )

    @property
    def trusts_kernel(self) -> bool:
        """Return whether the kernel's word on who connects stands for a token.

        A server that others can reach is one behind forwarded ports, whose forwarder runs as root or as its user.
        """
        return self.is_loopback and not self.require_token and not self.root_path

    @property
    def is_loopback(self) -> bool:
        """Return whether only this machine can reach the server."""
        if self.host == "localhost" or self.uds is not None:
            return True
        try:
            return ipaddress.ip_address(self.host.strip("[]")).is_loopback
        except ValueError:
            return False

    @property
    def host_names(self) -> frozenset[str] | None:
        """Return the names that a request may have in its Host header; None if it may have any."""
        if self.hosts or self.is_loopback:
            return LOOPBACK_NAMES | {name.lower() for name in self.hosts}
        return None


def networks_of(words: Iterable[str]) -> tuple[ipaddress.IPv4Network | ipaddress.IPv6Network, ...]:
    """Return the networks that words such as 10.1.0.0/16 name. Raises: InvalidInputError."""
    try:
        return tuple(map(ipaddress.ip_network, words))
    except ValueError as error:
        raise InvalidInputError(f"webhook network: {error}, expected a form such as 10.1.0.0/16") from error


def is_token(text: str) -> bool:
    """Return whether a text can serve as a bearer token."""
    return len(text) >= TOKEN_CHARACTERS and text.isascii() and text.isprintable() and " " not in text
