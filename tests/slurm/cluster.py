"""A whole Slurm for tests: munge, MariaDB, slurmdbd, slurmctld and pretended nodes, in one directory, on loopback.

    python tests/slurm/cluster.py up DIRECTORY [--nodes 2]      starts it; prints the environment to use, as JSON
    python tests/slurm/cluster.py down DIRECTORY                ends its daemons by their process ids

Needs root and Debian's packages (PACKAGES). The database listens on a socket alone; Slurm's ports are free ones.
"""

import argparse
import json
import os
import secrets
import shutil
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

PACKAGES = "slurm-wlm slurmctld slurmd slurmdbd slurm-client munge mariadb-server"
INSTALL = f"apt-get install -y --no-install-recommends {PACKAGES}"
PROGRAMS = (
    *("munged", "mariadbd", "mariadb-install-db", "mariadb-admin", "slurmdbd", "slurmctld", "slurmd"),
    *("sacct", "sacctmgr", "sinfo", "sbatch"),
)
DAEMONS = ("slurmd.node*", "slurmctld", "slurmdbd", "mariadbd", "munged")  # ended in this order
PATIENCE_SECONDS = 90.0  # other tests may hold all cores meanwhile

ACCOUNTING = """\
DbdHost=localhost
DbdAddr=127.0.0.1
DbdPort={database_port}
AuthType=auth/munge
AuthInfo=socket={home}/munge/socket
SlurmUser=root
StorageType=accounting_storage/mysql
StorageHost=localhost
StorageUser=root
StorageLoc=accounting
PidFile={home}/pid/slurmdbd
LogFile={home}/log/slurmdbd
"""

SCHEDULING = """\
ClusterName=crosswind
SlurmctldHost={host}(127.0.0.1)
SlurmctldPort={controller_port}
SlurmUser=root
SlurmdUser=root
AuthType=auth/munge
AuthInfo=socket={home}/munge/socket
CredType=cred/munge
AccountingStorageType=accounting_storage/slurmdbd
AccountingStorageHost=127.0.0.1
AccountingStoragePort={database_port}
AccountingStoragePass={home}/munge/socket
JobAcctGatherType=jobacct_gather/linux
JobAcctGatherFrequency=task=1
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
MpiDefault=none
SelectType=select/cons_tres
SelectTypeParameters=CR_Core
SchedulerParameters=sched_interval=1,bf_interval=1,batch_sched_delay=0
ReturnToService=2
KillWait=15
StateSaveLocation={home}/state
SlurmdSpoolDir={home}/spool/%n
SlurmctldPidFile={home}/pid/slurmctld
SlurmdPidFile={home}/pid/slurmd.%n
SlurmctldLogFile={home}/log/slurmctld
SlurmdLogFile={home}/log/slurmd.%n
PartitionName=test Nodes=ALL Default=YES MaxTime=10 State=UP
"""


class NotReadyError(Exception):
    """The cluster did not come up; the message says which part, and shows the end of its log."""


def missing() -> str:
    """Return what this machine lacks to run the cluster, with the way out; empty when nothing."""
    absent = [program for program in PROGRAMS if shutil.which(program) is None]
    if absent:
        return f"Slurm's {', '.join(absent)} not found: {INSTALL}"
    return "" if os.geteuid() == 0 else "starting Slurm's daemons needs root"


def environment(home: Path) -> dict[str, str]:
    """The environment in which sacct, sbatch and the others talk to the cluster in `home`."""
    inherited = {name: text for name, text in os.environ.items() if not name.startswith(("SLURM_", "SBATCH_"))}
    return inherited | {"SLURM_CONF": str(home / "etc/slurm.conf"), "MYSQL_UNIX_PORT": str(home / "mysql.sock")}


def up(home: Path, nodes: int) -> None:
    """Starts the cluster. Raises: NotReadyError."""
    for folder in ("etc", "munge", "pid", "log", "state", "database", *(f"spool/node{n + 1}" for n in range(nodes))):
        (home / folder).mkdir(parents=True, mode=0o700)
    configure(home, nodes)
    start_munge(home)
    start_database(home)
    command(home, "slurmdbd")
    wait_for(home, "slurmdbd", lambda: succeeds(home, "sacctmgr", "--noheader", "list", "cluster"))
    command(home, "sacctmgr", "--immediate", "add", "cluster", "crosswind")
    command(home, "sacctmgr", "--immediate", "add", "account", "weather")
    command(home, "sacctmgr", "--immediate", "add", "user", "root", "account=weather")
    command(home, "slurmctld")
    for n in range(nodes):
        command(home, "slurmd", "-N", f"node{n + 1}")
    wait_for(home, "slurmctld", lambda: idle_nodes(home) == nodes)


def configure(home: Path, nodes: int) -> None:
    """Writes slurm.conf and slurmdbd.conf with ports that nobody uses now."""
    controller_port, database_port, *node_ports = free_ports(2 + nodes)
    host = socket.gethostname().split(".")[0]
    values = {"home": home, "host": host, "controller_port": controller_port, "database_port": database_port}
    machines = [
        f"NodeName=node{n + 1} NodeHostname={host} NodeAddr=127.0.0.1 Port={port} CPUs=2 State=UNKNOWN\n"
        for n, port in enumerate(node_ports)
    ]
    (home / "etc/slurm.conf").write_text("".join(machines) + SCHEDULING.format(**values))
    (home / "etc/slurmdbd.conf").write_text(ACCOUNTING.format(**values))
    (home / "etc/slurmdbd.conf").chmod(0o600)  # slurmdbd refuses one that others can read


def free_ports(count: int) -> list[int]:
    """Ports on loopback that nobody listens on."""
    sockets = [socket.create_server(("127.0.0.1", 0)) for _ in range(count)]
    try:
        return [opened.getsockname()[1] for opened in sockets]
    finally:
        for opened in sockets:
            opened.close()


def start_munge(home: Path) -> None:
    """Starts munge with a fresh key and a socket of its own."""
    key = home / "munge/key"
    key.write_bytes(secrets.token_bytes(1024))
    key.chmod(0o400)
    (home / "munge").chmod(0o711)
    files = {"key-file": "munge/key", "socket": "munge/socket", "seed-file": "munge/seed"}
    files |= {"pid-file": "pid/munged", "log-file": "log/munged"}
    command(home, "munged", "--force", *(f"--{option}={home / file}" for option, file in files.items()))


def start_database(home: Path) -> None:
    """Starts MariaDB on a socket alone; root is who the kernel says is root, so there is no password."""
    storage = ("--no-defaults", "--user=root", f"--datadir={home / 'database'}")
    command(home, "mariadb-install-db", *storage, "--auth-root-authentication-method=socket", "--skip-test-db")
    with (home / "log/mariadbd").open("wb") as log:
        server = subprocess.Popen(
            [
                "mariadbd",
                *storage,
                f"--socket={home / 'mysql.sock'}",
                "--skip-networking",
                "--innodb-lock-wait-timeout=900",
            ],
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=log,
            start_new_session=True,
        )
    (home / "pid/mariadbd").write_text(str(server.pid))
    wait_for(home, "mariadbd", lambda: succeeds(home, "mariadb-admin", "--no-defaults", "ping"))


def idle_nodes(home: Path) -> int:
    """Return how many nodes are ready for work."""
    listing = subprocess.run(
        ["timeout", "5", "sinfo", "--noheader", "--Node", "--states=idle", "--format=%N"],
        env=environment(home),
        capture_output=True,
        text=True,
        check=False,
    )
    return len(listing.stdout.split())


def command(home: Path, *words: str) -> None:
    """Runs a program of the cluster. Raises: NotReadyError."""
    log = home / "log" / f"start-{words[0]}"
    with log.open("ab") as output:
        status = subprocess.run(
            words,
            env=environment(home),
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=output,
            check=False,
            timeout=60,
        ).returncode
    if status != 0:
        raise NotReadyError(f"{' '.join(words)}: exit status {status}\n{log.read_text(errors='replace')[-2000:]}")


def succeeds(home: Path, *words: str) -> bool:
    """Return whether a question to a daemon is answered; Slurm's clients may hang, hence the short time."""
    question = ["timeout", "5", *words]
    return subprocess.run(question, env=environment(home), capture_output=True, check=False).returncode == 0


def wait_for(home: Path, daemon: str, ready: Callable[[], bool]) -> None:
    """Waits until a daemon answers. Raises: NotReadyError."""
    deadline = time.monotonic() + PATIENCE_SECONDS
    while not ready():
        if time.monotonic() > deadline:
            log = home / "log" / daemon
            end = log.read_text(errors="replace")[-2000:] if log.exists() else "(no log)"
            raise NotReadyError(f"{daemon} not ready after {PATIENCE_SECONDS:.0f} s\n{end}")
        time.sleep(0.1)


def down(home: Path) -> None:
    """Cancels what still runs and ends the daemons that `up` started, the last started first."""
    if (home / "pid/slurmctld").exists() and succeeds(home, "scancel", "--user=root"):
        try:
            wait_for(home, "slurmctld", lambda: idle_nodes(home) == len(list((home / "spool").iterdir())))
        except NotReadyError as error:
            sys.stderr.write(f"jobs may be left: {error}\n")
    for pattern in DAEMONS:
        for file in sorted((home / "pid").glob(pattern)):
            pid = file.read_text().strip()
            if pid.isdigit():
                end(int(pid), pattern.split(".")[0])
            file.unlink(missing_ok=True)


def end(pid: int, name: str) -> None:
    """Ends one process if it still is the daemon `name`; kills it when it does not go."""
    for sent, patience in ((signal.SIGTERM, 10.0), (signal.SIGKILL, 5.0)):
        if not is_running(pid, name):
            return
        os.kill(pid, sent)
        deadline = time.monotonic() + patience
        while is_running(pid, name) and time.monotonic() < deadline:
            time.sleep(0.05)


def is_running(pid: int, name: str) -> bool:
    """Return whether process `pid` lives and is the program `name`: numbers are used again, and a zombie has ended."""
    try:
        status = Path(f"/proc/{pid}/status").read_text()
    except (FileNotFoundError, ProcessLookupError):
        return False
    return f"Name:\t{name[:15]}\n" in status and "State:\tZ" not in status


def main() -> int:
    """Exit status 0, or 1 with the reason on stderr."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("verb", choices=("up", "down"))
    parser.add_argument("directory", type=Path)
    parser.add_argument("--nodes", type=int, default=2)
    arguments = parser.parse_args()
    home = arguments.directory.resolve()
    if arguments.verb == "down":
        down(home)
        return 0
    try:
        if lacking := missing():
            raise NotReadyError(lacking)
        up(home, arguments.nodes)
    except (NotReadyError, subprocess.TimeoutExpired) as error:
        down(home)
        sys.stderr.write(f"{error}\n")
        return 1
    sys.stdout.write(json.dumps({name: environment(home)[name] for name in ("SLURM_CONF", "MYSQL_UNIX_PORT")}) + "\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
