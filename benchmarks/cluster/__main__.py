"""Bring up PostgreSQL, an S3 server, two servers behind HAProxy and a Dask cluster, until Ctrl-C: `make cluster`."""

import argparse
import json
import os
import secrets
import signal
from contextlib import ExitStack
from dataclasses import fields
from pathlib import Path

from benchmarks.cluster.parts import KEYS, dask, lake_address, object_store, postgres, proxy, server
from benchmarks.cluster.process import free_port
from crosswind.settings import Settings

PORT = 8320
LAKE = "folder"  # the lake's place by default: write "s3" here to switch it over to the S3 server


def main() -> None:
    parser = argparse.ArgumentParser(prog="benchmarks.cluster", description=__doc__)
    parser.add_argument("--folder", type=Path, default=Path(".cluster"), help="for all data and logs (%(default)s)")
    parser.add_argument("--port", type=int, default=PORT, help="of the proxy (%(default)s); 0 takes a free one")
    parser.add_argument("--lake", choices=("folder", "s3"), default=LAKE, help="the lake's place (%(default)s)")
    parser.add_argument("--json", action="store_true", help="one line of JSON once all is ready")
    arguments = parser.parse_args()
    if arguments.lake == "s3" and "lake" not in {field.name for field in fields(Settings)}:
        parser.error("--lake s3: this version of Crosswind keeps its lake in a folder only")
    signal.signal(signal.SIGTERM, signal.default_int_handler)  # both end it the same way
    try:
        with ExitStack() as kept:
            facts = _started(kept, arguments.folder.absolute(), arguments.port or free_port(), arguments.lake)
            print(json.dumps(facts) if arguments.json else _shown(facts), flush=True)
            while True:
                signal.pause()
    except KeyboardInterrupt:
        if not arguments.json:
            print("Stopped.", flush=True)


def _started(kept: ExitStack, folder: Path, port: int, lake: str) -> dict[str, object]:
    """Start everything, in the order in which one needs the other; it ends in the opposite order."""
    folder.mkdir(parents=True, exist_ok=True)
    token = _token(folder / "token")
    database, _ = kept.enter_context(postgres(folder / "postgres"))
    store = kept.enter_context(object_store(folder / "s3"))
    environment = {"CROSSWIND_HOME": str(folder / "store"), "CROSSWIND_DATABASE": database, "CROSSWIND_TOKEN": token}
    if lake == "s3":
        environment |= {"CROSSWIND_LAKE": lake_address(store), **KEYS}
    names = [word for host in ("127.0.0.1", "localhost") for word in ("--allow-host", f"{host}:{port}")]
    words = [*names, "--limit", "client_connections=2000"]  # all come from the proxy's address
    (one, pid_one), (two, pid_two) = (
        kept.enter_context(server(folder / f"server-{place}", environment, *words)) for place in (1, 2)
    )
    url = kept.enter_context(proxy(folder / "proxy", port, (one, two), token))
    address, _ = kept.enter_context(dask(folder / "dask"))
    servers = [{"url": f"http://127.0.0.1:{port}", "pid": pid} for port, pid in ((one, pid_one), (two, pid_two))]
    facts = {"proxy": url, "servers": servers, "database": database, "s3": store, "dask": address}
    return {
        **facts,
        "lake": environment.get("CROSSWIND_LAKE", str(folder / "store/lake")),
        "token": str(folder / "token"),
    }


def _token(path: Path) -> str:
    """Return the servers' token, made on first use; only its owner may read the file."""
    if not path.exists():
        with os.fdopen(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "w") as file:
            file.write(secrets.token_hex(32))
    return path.read_text()


def _shown(facts: dict[str, object]) -> str:
    lines = [f"{name:10} {value}" for name, value in facts.items() if name != "servers"]
    servers = facts["servers"]
    assert isinstance(servers, list)
    lines += [f"server {place}   {one['url']} (pid {one['pid']})" for place, one in enumerate(servers, 1)]
    return "\n".join([*lines, "Ctrl-C ends them all; data and logs stay in the folder."])


if __name__ == "__main__":
    main()
