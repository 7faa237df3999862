"""`crosswind serve`: pages and API over what is stored."""

import argparse
import logging
import os
import sys
import threading
from contextlib import suppress
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, NoReturn

from crosswind.cli.text.output import say, say_json
from crosswind.data.schema.errors import UnavailableError
from crosswind.settings import Settings

if TYPE_CHECKING:  # heavy
    from crosswind.api.settings import ServerSettings
    from crosswind.data.store.store import Store

log = logging.getLogger("crosswind.serve")
PORT = 8321


def configure(parser: argparse.ArgumentParser) -> None:
    """Adds the verb's arguments."""
    parser.add_argument("--host", default="127.0.0.1", help="address to listen on (default: this machine only)")
    parser.add_argument("--port", type=int, default=PORT, help=f"default {PORT}; 0 takes a free one")
    parser.add_argument("--uds", type=Path, metavar="PATH", help="listen on this Unix socket instead of a port")
    parser.add_argument(
        "--uds-mode", type=_mode, default=0o600, metavar="MODE", help="who may open that socket (default: 600)"
    )
    parser.add_argument(
        "--require-token", action="store_true", help="require a token also from this user and root on this machine"
    )
    parser.add_argument(
        "--trusted-proxy",
        metavar="ADDRESS",
        help="proxy that logs people in and names them: ADDRESS, or on this machine 127.0.0.1@USER or unix@USER",
    )
    parser.add_argument(
        "--user-header",
        default="X-Forwarded-User",
        metavar="NAME",
        help="in which field (default: %(default)s)",
    )
    parser.add_argument(
        "--oidc", type=Path, metavar="FILE", help="where people log in, an OpenID Connect provider: docs/access.md"
    )
    parser.add_argument("--root-path", default="", help="prefix under which a proxy shows the pages")
    parser.add_argument(
        "--allow-host", action="append", default=[], metavar="NAME", help="a further name of this server"
    )
    parser.add_argument(
        "--limit",
        action="append",
        default=[],
        metavar="NAME=NUMBER",
        help="a limit on what clients may hold, such as connections=500: docs/operations.md",
    )
    parser.add_argument("--log-format", choices=("text", "json"), default="text", help="of log lines (default: text)")
    parser.add_argument(
        "--log-level",
        choices=("error", "warning", "info"),
        default="warning",
        help="info also logs every request (default: warning)",
    )
    parser.add_argument(
        "--webhook-network",
        action="append",
        default=[],
        metavar="NETWORK",
        help="such as 10.1.0.0/16: webhooks may be sent to it besides public addresses",
    )
    parser.add_argument("--check", action="store_true", help="check settings, store and address, and serve nothing")


def _mode(text: str) -> int:
    try:
        return int(text, 8)
    except ValueError as error:
        raise argparse.ArgumentTypeError(f"{text!r:.20}, expected an octal mode such as 660") from error


def execute(arguments: argparse.Namespace, settings: Settings) -> int:
    """Serve until stopped."""
    from crosswind.api.edge.limits import Limits  # noqa: PLC0415 - heavy
    from crosswind.api.observe.logs import LogFormat, LogLevel, configure_logs  # noqa: PLC0415
    from crosswind.api.oidc_settings import OidcSettings  # noqa: PLC0415 - heavy
    from crosswind.api.settings import ServerSettings, networks_of  # noqa: PLC0415

    oidc = None if arguments.oidc is None else OidcSettings.load(arguments.oidc)
    wanted = ServerSettings(
        host=arguments.host,
        port=arguments.port,
        token=settings.token,
        root_path=arguments.root_path,
        hosts=(*arguments.allow_host, *(() if oidc is None else (oidc.host,))),
        uds=arguments.uds,
        uds_mode=arguments.uds_mode,
        require_token=arguments.require_token,
        trusted_proxy=arguments.trusted_proxy,
        user_header=arguments.user_header,
        oidc=oidc,
        intensity=settings.intensity,
        quota_bytes=settings.quota_bytes,
        audit_days=settings.audit_kept_days,
        batch_days=settings.batches_kept_days,
        kept=settings.kept,
        limits=Limits.of(arguments.limit),
        webhook_networks=networks_of(arguments.webhook_network),
    )
    if arguments.check:
        return check(settings, wanted, as_json=arguments.json)
    configure_logs(LogFormat(arguments.log_format), LogLevel(arguments.log_level))
    return serve(settings, wanted, as_json=arguments.json)


def serve(settings: Settings, wanted: "ServerSettings", *, as_json: bool = False) -> int:
    """Serve a store, and print its URL once the port is bound; end the process if threads still work after that.

    Raises: UnavailableError, ConflictError naming what is wrong with the store; for an object store that is away there
    is /readyz.
    """
    from crosswind.api import server  # noqa: PLC0415 - heavy
    from crosswind.client.installed_store import open_store  # noqa: PLC0415

    before = set(threading.enumerate())

    def ready(url: str) -> None:
        if as_json:
            say_json({"url": url})
        else:
            say(f"Pages and API: {url}  (Ctrl-C ends it)")

    with open_store(settings) as store:
        _look_at_objects(store)
        server.serve(store, wanted, ready=ready)
    if set(threading.enumerate()) - before:
        _leave_at_once()
    return 0


def _look_at_objects(store: "Store") -> None:
    """Log that the lake's object store is away; what copies hold is served meanwhile. Raises: ConflictError."""
    if store.address is None:
        return
    try:
        store.lake.storage.check()
    except UnavailableError as error:
        log.warning("served from copies until the object store answers: %s", error)


def check(settings: Settings, wanted: "ServerSettings", *, as_json: bool = False) -> int:
    """Check what `serve` needs, and print what it would serve and within which limits; nothing is served.

    Raises: UnavailableError, ConflictError, MalformedError naming what is wrong.
    """
    from crosswind.api.access.oidc.provider import Provider  # noqa: PLC0415 - heavy
    from crosswind.api.readiness import check_store  # noqa: PLC0415
    from crosswind.api.server import listen, url_of  # noqa: PLC0415
    from crosswind.client.installed_store import open_store  # noqa: PLC0415

    with (
        open_store(settings) as store,
        listen(wanted) as listening,
    ):
        check_store(store)
        if wanted.oidc is not None:
            Provider(wanted.oidc).metadata()
        url, limits = url_of(listening, wanted), asdict(wanted.limits.within_files())
    if wanted.uds is not None:
        wanted.uds.unlink(missing_ok=True)
    if as_json:
        say_json({"url": url, "store": str(settings.home), "token": wanted.token is not None, "limits": limits})
    else:
        say(f"The store {settings.home} can be read and written, and {url} is free.")
        say("\n".join(f"{name}={value}" for name, value in limits.items()))
    return 0


def _leave_at_once() -> NoReturn:
    """End the process with 0, and its threads at any point.

    At its normal end the interpreter unwinds every thread that requests its lock. Training runs in C++ code that cannot
    be unwound, so the process would abort. For the files this is like a kill, which they survive at any time.
    """
    logging.shutdown()
    for stream in (sys.stdout, sys.stderr):
        with suppress(OSError):  # its reader has left
            stream.flush()
    os._exit(0)
