"""Bring up PostgreSQL, an S3 server, two servers behind HAProxy and a Dask cluster, until Ctrl-C: `make cluster`."""

import argparse
import fcntl
import json
import os
import secrets
import shlex
import shutil
import signal
from contextlib import ExitStack
from pathlib import Path

from benchmarks.cluster.parts import KEYS, dask, lake_address, object_store, postgres, proxy, server
from benchmarks.cluster.process import free_port

PORT, SERVERS = 8320, (1, 2)
MARK = ".cluster"  # this file says that a folder is of a cluster, which the next one may empty


def main() -> None:
    parser = argparse.ArgumentParser(prog="benchmarks.cluster", description=__doc__)
    parser.add_argument("--folder", type=Path, default=Path(".cluster"), help="for all data and logs (%(default)s)")
    parser.add_argument("--port", type=int, default=PORT, help="of the proxy (%(default)s); 0 takes a free one")
    parser.add_argument("--json", action="store_true", help="one line of JSON once all is ready")
    arguments = parser.parse_args()
    for number in (signal.SIGINT, signal.SIGTERM):  # both end it the same way, also where a shell lets one be ignored
        signal.signal(number, signal.default_int_handler)
    try:
        with ExitStack() as kept:
            folder = arguments.folder.absolute()
            take(kept, folder)
            facts = _started(kept, folder, arguments.port or free_port())
            print(json.dumps(facts) if arguments.json else _shown(facts), flush=True)
            while True:
                signal.pause()
    except KeyboardInterrupt:
        if not arguments.json:
            print("\nStopped.", flush=True)


def take(kept: ExitStack, folder: Path) -> None:
    """Empty the folder of an earlier cluster, whose lake ended with its S3 server. Raises: SystemExit."""
    mark = folder / MARK
    if folder.exists() and not mark.exists() and any(folder.iterdir()):
        raise SystemExit(f"--folder {folder} holds something else: expected an empty folder, or an earlier cluster's")
    folder.mkdir(parents=True, exist_ok=True)
    lock = kept.enter_context(mark.open("a"))
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        raise SystemExit(f"--folder {folder}: a cluster runs in it; end it, or name another folder") from None
    for path in folder.iterdir():
        if path.is_dir():
            shutil.rmtree(path)
        elif path != mark:
            path.unlink()


def _started(kept: ExitStack, folder: Path, port: int) -> dict[str, object]:
    """Start everything, in the order in which one needs the other; it ends in the opposite order."""
    token = secrets.token_hex(32)
    database, database_pid = kept.enter_context(postgres(folder / "postgres"))
    store = kept.enter_context(object_store(folder / "s3"))
    shared = {"CROSSWIND_DATABASE": database, "CROSSWIND_LAKE": lake_address(store), "CROSSWIND_TOKEN": token, **KEYS}
    names = [word for host in ("127.0.0.1", "localhost") for word in ("--allow-host", f"{host}:{port}")]
    words = [*names, "--limit", "client_connections=2000"]  # all come from the proxy's address
    homes = [folder / f"server-{place}" for place in SERVERS]  # each its own, as on machines of their own
    (one, pid_one), (two, pid_two) = (
        kept.enter_context(server(home, {"CROSSWIND_HOME": str(home / "home"), **shared}, *words)) for home in homes
    )
    url = kept.enter_context(proxy(folder / "proxy", port, (one, two), token))
    others = {"CROSSWIND_HOME": str(folder / "home"), "CROSSWIND_SERVER": url, **shared}
    address, _ = kept.enter_context(dask(folder / "dask", environment=others))
    environment = _environment(folder, others)
    servers = [{"url": f"http://127.0.0.1:{port}", "pid": pid} for port, pid in ((one, pid_one), (two, pid_two))]
    return {
        "proxy": url,
        "servers": servers,
        "database": database,
        "database_pid": database_pid,
        "s3": store,
        "lake": shared["CROSSWIND_LAKE"],
        "dask": address,
        "environment": str(environment),
    }


def _environment(folder: Path, variables: dict[str, str]) -> Path:
    """Write the settings of another program of this installation for a shell; only their owner may read them."""
    path = folder / "environment"
    with os.fdopen(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "w") as file:
        file.writelines(f"export {name}={shlex.quote(text)}\n" for name, text in variables.items())
    return path


def _shown(facts: dict[str, object]) -> str:
    servers = facts["servers"]
    assert isinstance(servers, list)
    environment = facts["environment"]
    return "\n".join(
        [
            f"pages, API   {facts['proxy']}    HAProxy, in front of both servers",
            *(f"server {place}     {one['url']}    pid {one['pid']}" for place, one in enumerate(servers, 1)),
            f"catalog      {facts['database']}",
            f"lake         {facts['lake']}",
            f"Dask         {facts['dask']}    2 workers of 2 GB",
            "",
            "In another shell:",
            f"  . {environment}    # the settings of this cluster, with its token (CROSSWIND_TOKEN), for all verbs",
            "  crosswind runs               # asks the servers, through the proxy",
            "  crosswind lake status        # looks at catalog and lake itself",
            f"  crosswind models train run_seconds --cluster {facts['dask']}",
            "",
            "Ctrl-C ends all of it. What the S3 server holds ends with it; the next start empties the folder.",
        ]
    )


if __name__ == "__main__":
    main()
