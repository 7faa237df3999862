"""Checks that a request comes from the server's own pages, or from a program."""

from urllib.parse import urlsplit

from starlette.datastructures import Headers

from crosswind.api.problems import shown
from crosswind.api.settings import ServerSettings

SAFE_METHODS = frozenset({"GET", "HEAD", "OPTIONS"})
OWN_SITES = frozenset({"same-origin", "none"})  # of Sec-Fetch-Site: our own page, or what the user typed
PORTS = {"http": 80, "https": 443}
Origin = tuple[str, str, int]  # scheme, name, port


class CrossSite:
    """Refuses what browsers send for pages of other sites, in three ways that browsers of different age support.

    A page elsewhere may have its own name resolve to our address (DNS rebinding): Host. It may send a form here, with
    or without a body: Origin and Sec-Fetch-Site. And it may load our answers as pictures or scripts, which it cannot
    read, but which cost us: Sec-Fetch-Site. Programs send neither of the last two.
    """

    def __init__(self, settings: ServerSettings) -> None:
        names = settings.host_names
        self._host_names = None if names is None else frozenset(map(host_name, names))
        self._proxies = {host_name(name): name.lower() for name in settings.hosts}

    def refusal(self, method: str, headers: Headers) -> str | None:
        """Return why the request seems to come from another site, or None."""
        host = headers.get("host", "")
        if self._host_names is not None and host_name(host) not in self._host_names:
            return f"host {shown(host_name(host))} is not one of {', '.join(sorted(self._host_names))}"
        if method in SAFE_METHODS:
            return self._foreign_load(headers)
        site, origin = headers.get("sec-fetch-site"), headers.get("origin")
        if site is not None and site not in OWN_SITES:
            return f"a page of another site sent this (Sec-Fetch-Site: {shown(site)})"
        if origin is None or origin_of(origin) in self._own_origins(host, headers):
            return None
        return f"origin {shown(origin)} is another site than {shown(host)}"

    def _foreign_load(self, headers: Headers) -> str | None:
        """Return why a page of another site may not load this into itself; a link to us may be followed."""
        if headers.get("sec-fetch-site") != "cross-site" or headers.get("sec-fetch-mode") == "navigate":
            return None
        return "a page of another site loads this into itself (Sec-Fetch-Site: cross-site)"

    def _own_origins(self, host: str, headers: Headers) -> set[Origin | None]:
        """Return the origins of our pages: as this request addresses us, and as the named proxies show us.

        Such a proxy may end TLS without a word, and may pass on its own name or the one by which it reaches us.
        """
        is_proxied = host_name(host) in self._proxies
        schemes = [headers.get("x-forwarded-proto", "http").strip().lower(), *(("https",) if is_proxied else ())]
        own = {origin_of(f"{scheme}://{host}") for scheme in schemes}
        return (own | {origin_of(f"{scheme}://{name}") for scheme in PORTS for name in self._proxies.values()}) - {None}


def origin_of(text: str) -> Origin | None:
    """Return scheme, name and port of an origin; None for one that is none, such as `null`."""
    try:
        parts = urlsplit(text)
        port = parts.port or PORTS.get(parts.scheme)
    except ValueError:
        return None
    return (parts.scheme, host_name(parts.netloc), port) if parts.netloc and port else None


def host_name(host: str) -> str:
    """Return the name in a Host header: lower case, no port; an IPv6 address keeps its brackets."""
    name = host[: host.find("]") + 1] if host.startswith("[") else host.partition(":")[0]
    return name.lower().rstrip(".")
