import json
import os
import shlex
import socket
import stat
import subprocess
import tempfile
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from tests.needs import KERNEL, ROOT, needs
from tests.serving import answering

from crosswind.data.schema.access import Principal, PrincipalKind, Scope
from crosswind.data.schema.errors import InvalidInputError, UnavailableError
from crosswind.data.store.store import Store
from crosswind.ingest.agent.agent import run_agent
from crosswind.ingest.agent.job_tokens import AGAIN_SECONDS, KEPT_SECONDS, JobTokens, job_of_peer, serving_tokens
from crosswind.ingest.agent.settings import AgentSettings, JobTokensSettings, ShipSettings, read_settings
from crosswind.ingest.ship.token import ship_token

IN_JOB_7 = "0::/system.slice/slurmstepd.scope/job_7/step_0/user/task_0\n"
AGENT = Principal(PrincipalKind.AGENT, "n1", scopes=frozenset({Scope.INGEST}), system="lab")


def proc_of(folder: Path, groups: str, pid: int | None = None) -> Path:
    """Write a tree of /proc in which this process is in these control groups."""
    place = folder / "proc" / str(pid or os.getpid())
    place.mkdir(parents=True)
    (place / "cgroup").write_text(groups)
    return folder / "proc"


@contextmanager
def pair() -> Iterator[socket.socket]:
    ours, theirs = socket.socketpair()
    with ours, theirs:
        yield ours


def test_the_job_is_that_of_the_peers_control_group(tmp_path: Path) -> None:
    with pair() as ours:
        assert job_of_peer(ours, proc_of(tmp_path, IN_JOB_7)) == "7"


@pytest.mark.parametrize("groups", ["0::/user.slice/user-1000.slice\n", "", "0::/user.slice/job_7/step_0\n"])
def test_a_process_outside_of_a_job_has_none(tmp_path: Path, groups: str) -> None:
    with pair() as ours:
        assert job_of_peer(ours, proc_of(tmp_path, groups)) is None
        assert job_of_peer(ours) is None  # as this very test


def test_a_process_that_has_ended_or_whose_number_is_another_users_has_none(tmp_path: Path) -> None:
    with pair() as ours:
        assert job_of_peer(ours, proc_of(tmp_path / "ended", IN_JOB_7, pid=1)) is None
        others = proc_of(tmp_path / "others", IN_JOB_7)
        if os.geteuid() == 0:
            os.chown(others / str(os.getpid()), 65534, 65534)
            assert job_of_peer(ours, others) is None


def test_a_job_gets_a_token_that_its_server_takes_for_that_job_alone(tmp_path: Path) -> None:
    path = tmp_path / "tokens.sock"
    with Store.open(tmp_path / "home") as store, store.catalog.write() as session:
        own = session.tokens.issue(AGENT, 60, created_by="a test")
    with answering(tmp_path / "home") as url:
        tokens = JobTokens(url, own.secret)
        with serving_tokens(path, tokens.token_of, proc_of(tmp_path, IN_JOB_7)):
            assert stat.S_IMODE(path.stat().st_mode) == 0o666
            environment = {"CROSSWIND_TOKEN_SOCKET": str(path)}
            secret = ship_token(environment)
            assert ship_token(environment) == secret  # the same for an hour
        assert not path.exists()
    with Store.open(tmp_path / "home") as store, store.catalog.read() as session:
        [_, token] = session.tokens.find()
    principal = token.principal
    assert (principal.kind, principal.name, principal.system, principal.user) == ("job", "7", "lab", None)
    assert token.parent_id == own.token.token_id
    assert token.expires_ns == own.token.expires_ns  # never longer than the agent's


def test_who_is_in_no_job_or_whose_server_refuses_learns_why(tmp_path: Path) -> None:
    path, environment = tmp_path / "tokens.sock", {"CROSSWIND_TOKEN_SOCKET": str(tmp_path / "tokens.sock")}
    with answering(tmp_path / "home") as url:
        refused = JobTokens(url, "cw_unknown-token")
        with (
            serving_tokens(path, refused.token_of, proc_of(tmp_path, IN_JOB_7)),
            pytest.raises(UnavailableError, match="the token is unknown here"),
        ):
            ship_token(environment)
        with serving_tokens(path, refused.token_of), pytest.raises(UnavailableError, match="no job of Slurm's"):
            ship_token(environment)
    with pytest.raises(UnavailableError, match="No such file"):
        ship_token(environment)


def test_a_server_is_asked_once_an_hour_for_a_job_and_again_soon_after_a_refusal(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    now, asked = [0.0], []
    answers: dict[str, str | UnavailableError] = {"7": "cw_a", "8": UnavailableError("busy")}
    tokens = JobTokens("http://localhost:1", None, lambda: now[0])
    monkeypatch.setattr(tokens, "_asked", lambda job_id: (asked.append(job_id), answers[job_id])[1])
    for _ in range(3):
        assert tokens.token_of("7") == "cw_a"
        with pytest.raises(UnavailableError, match="busy"):
            tokens.token_of("8")
    assert asked == ["7", "8"]
    now[0] = AGAIN_SECONDS
    with pytest.raises(UnavailableError, match="busy"):
        tokens.token_of("8")
    assert tokens.token_of("7") == "cw_a"
    now[0] = KEPT_SECONDS
    tokens.token_of("7")
    assert asked == ["7", "8", "8", "7"]


def test_an_agent_serves_the_socket_that_its_settings_name(tmp_path: Path) -> None:
    file = tmp_path / "agent.toml"
    file.write_text(f'[ship]\nurl = "http://127.0.0.1:9"\n[job_tokens]\nlisten = "{tmp_path}/tokens.sock"\n')
    settings = read_settings(file, AgentSettings(tmp_path / "spool", root=tmp_path / "root"))
    stop = threading.Event()
    thread = threading.Thread(target=run_agent, args=(settings, stop))
    thread.start()
    try:
        while not (tmp_path / "tokens.sock").exists():
            assert thread.is_alive()
            stop.wait(0.01)
        with pytest.raises(UnavailableError, match="no job of Slurm's"):
            ship_token({"CROSSWIND_TOKEN_SOCKET": str(tmp_path / "tokens.sock")})
    finally:
        stop.set()
        thread.join(30)


@pytest.mark.parametrize(("listen", "url"), [("/run/x.sock", ""), ("x.sock", "http://127.0.0.1:9")])
def test_a_socket_without_a_server_or_a_whole_path_is_refused(tmp_path: Path, listen: str, url: str) -> None:
    with pytest.raises(InvalidInputError, match=r"job_tokens.listen .*expected a path, and ship.url"):
        AgentSettings(tmp_path, ship=ShipSettings(url), job_tokens=JobTokensSettings(listen))


@pytest.fixture
def real_group() -> Iterator[Path]:
    """Yield a control group of the kernel's as Slurm makes it for a task, of a job that no cluster has."""
    mounts = [line.split() for line in Path("/proc/mounts").read_text().splitlines()]
    place = next((Path(words[1]) for words in mounts if words[2] == "cgroup2"), Path("/sys/fs/cgroup"))
    parts = ("system.slice", "slurmstepd.scope", "job_4242424242", "step_0", "user", "task_0")
    folders = [place.joinpath(*parts[: number + 1]) for number in range(len(parts))]
    made = [folder for folder in folders if not folder.exists()]
    try:
        folders[-1].mkdir(parents=True)
    except OSError as error:
        pytest.skip(f"needs {KERNEL}: {folders[-1]}: {error.strerror}")
    yield folders[-1]
    for folder in reversed(made):
        folder.rmdir()


@needs(ROOT, "makes a control group", unless=os.geteuid() == 0)
def test_the_kernels_own_control_group_names_the_job_of_another_users_process(real_group: Path) -> None:
    with tempfile.TemporaryDirectory() as folder:
        Path(folder).chmod(0o755)  # the other user must reach the socket
        path = Path(folder) / "tokens.sock"
        ask = f"import socket; s = socket.socket(socket.AF_UNIX); s.connect({str(path)!r}); print(s.makefile().read())"
        enter = f"echo $$ > {real_group}/cgroup.procs && exec "
        other = ["/usr/bin/setpriv", "--reuid=65534", "--clear-groups", "/usr/bin/python3", "-c", ask]
        commands = ["/bin/sh", "-c", enter + shlex.join(other)], other
        with serving_tokens(path, lambda job_id: f"cw_of-{job_id}"):
            said = [subprocess.run(command, capture_output=True, check=True).stdout for command in commands]
    inside, outside = map(json.loads, said)
    assert inside == {"token": "cw_of-4242424242"}
    assert "no job of Slurm's" in outside["problem"]
