"""Promises of the image and compose files, as far as they show without a container engine."""

import json
import os
import re
import shlex
import shutil
import subprocess
import sys
import tomllib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml
from sqlalchemy.engine import make_url
from tests.needs import needs

ROOT = Path(__file__).parents[2]
DOCKER = ROOT / "docker"
CROSSWIND = Path(sys.executable).parent / "crosswind"
TOKEN = "0123456789abcdef" * 4
SECRETS = ("CROSSWIND_TOKEN", "CROSSWIND_DATABASE_PASSWORD")


def instructions() -> list[tuple[str, str]]:
    """The Dockerfile's instructions and their arguments."""
    text = re.sub(r"^#.*\n", "", (DOCKER / "Dockerfile").read_text(), flags=re.MULTILINE)
    lines = re.sub(r"\s*\\\n\s*", " ", text).splitlines()
    return [(line.split()[0], line.split(maxsplit=1)[1]) for line in lines if line.strip()]


def final_stage() -> list[tuple[str, str]]:
    """The instructions of the image that is run."""
    listed = instructions()
    return listed[max(place for place, (name, _) in enumerate(listed) if name == "FROM") :]


def last(instruction: str) -> str:
    """Return the last argument of an instruction in the image that is run: the one that holds."""
    return [argument for name, argument in final_stage() if name == instruction][-1]


def services() -> dict[str, Any]:
    declared: dict[str, Any] = yaml.safe_load((DOCKER / "compose.yaml").read_text())["services"]
    return declared


def environment(**given: str) -> dict[str, str]:
    """This process's environment with no setting of ours but the given ones."""
    return {name: text for name, text in os.environ.items() if not name.startswith("CROSSWIND_")} | given


@pytest.fixture
def served(tmp_path: Path, postgres_url: str) -> Iterator[tuple[subprocess.Popen[str], str]]:
    """A server as the files set it up, at a free port, and its port; on a PostgreSQL that stands for compose's."""
    declared = make_url(services()["server"]["environment"]["CROSSWIND_DATABASE"])
    real = make_url(postgres_url)
    database = declared.set(host=real.host, port=real.port, username=real.username, database=real.database)
    command = [word if word != "8321" else "0" for word in json.loads(last("CMD"))]
    settings = {
        "CROSSWIND_HOME": str(tmp_path / "store"),
        "CROSSWIND_TOKEN": TOKEN,
        "CROSSWIND_DATABASE": str(database),
    }
    server = subprocess.Popen(
        [CROSSWIND, *command, "--json"], env=environment(**settings), cwd=tmp_path, stdout=subprocess.PIPE, text=True
    )
    assert server.stdout
    try:
        line = server.stdout.readline()
        assert line, f"the server ended with exit status {server.wait(10)}"
        yield server, json.loads(line)["url"].rstrip("/").rpartition(":")[2]
    finally:
        server.terminate()
        server.wait(30)
        server.stdout.close()


def probe(port: str) -> int:
    """The exit status of the image's own health check, asked of another port."""
    command = json.loads(last("HEALTHCHECK").partition(" CMD ")[2])
    assert command[0] == "python"
    words = [sys.executable, *(word.replace(":8321/", f":{port}/") for word in command[1:])]
    return subprocess.run(words, stderr=subprocess.DEVNULL, check=False, timeout=20).returncode


def test_everything_that_is_copied_exists() -> None:
    copied = [argument.split() for name, argument in instructions() if name == "COPY" and "--from=" not in argument]
    assert copied
    for *sources, _destination in copied:
        for source in sources:
            assert (ROOT / source).exists(), source


def test_the_build_is_sent_all_of_the_package_and_no_secrets() -> None:
    lines = (DOCKER / "Dockerfile.dockerignore").read_text().splitlines()
    rules = [line for line in lines if line and not line.startswith("#")]
    assert rules[0] == "*"
    sent = {rule[1:] for rule in rules if rule.startswith("!")}
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    folders = {link.resolve().name for link in (ROOT / "src/crosswind").iterdir() if link.is_symlink()}
    named = ["src", "pyproject.toml", "constraints.txt", project["readme"], *project["license-files"]]
    assert {name.partition("/")[0] for name in named} | folders == sent
    assert "**/.env" in rules[rules.index("!src") :]


def test_the_requirements_are_those_of_the_extras() -> None:
    [run] = [argument for name, argument in instructions() if name == "RUN" and "requirements.txt &&" in argument]
    program = shlex.split(run.partition(" > requirements.txt")[0])
    assert program[:2] == ["python", "-c"]
    printed = subprocess.run(
        [sys.executable, *program[1:]], cwd=ROOT, capture_output=True, text=True, check=True
    ).stdout
    extras = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["optional-dependencies"]
    assert printed.splitlines() == extras["server"] + extras["postgres"]


def test_the_python_is_one_that_the_package_takes() -> None:
    [version] = [argument.partition("=")[2] for name, argument in instructions() if name == "ARG"]
    assert version == "3.11"  # the one that constraints.txt was tested with
    assert [argument.split()[0] for name, argument in instructions() if name == "FROM"] == [
        "python:${PYTHON_VERSION}-slim"
    ] * 2


def test_nothing_in_the_image_runs_as_root() -> None:
    user, _, group = last("USER").partition(":")
    assert int(user) > 0
    assert int(group) > 0
    names = [name for name, _ in final_stage()]
    assert names.index("USER") < names.index("CMD")


def test_the_store_is_kept_outside_the_image() -> None:
    assert f"CROSSWIND_HOME={last('VOLUME')}" in last("ENV")
    assert services()["server"]["volumes"] == [f"store:{last('VOLUME')}"]


@pytest.mark.thorough
def test_the_command_refuses_to_start_without_a_token(tmp_path: Path) -> None:
    words = [CROSSWIND, *json.loads(last("CMD"))]
    ended = subprocess.run(
        words, env=environment(CROSSWIND_HOME=str(tmp_path)), capture_output=True, text=True, check=False, timeout=60
    )
    assert ended.returncode == 2
    assert "CROSSWIND_TOKEN" in ended.stderr


@pytest.mark.thorough
def test_the_health_check_tells_a_live_server_from_a_dead_one(served: tuple[subprocess.Popen[str], str]) -> None:
    server, port = served
    assert probe(port) == 0
    server.terminate()
    server.wait(30)
    assert probe(port) == 1


def test_no_secret_has_a_default() -> None:
    text = (DOCKER / "compose.yaml").read_text()
    for name in SECRETS:
        used = re.findall(r"\$\{" + name + r"(.*?)\}", text)
        assert used
        assert all(rest.startswith(":?") and len(rest) > 20 for rest in used), used
    example = dict(re.findall(r"^(\w+)=(.*)$", (DOCKER / "env.example").read_text(), re.MULTILINE))
    assert [example[name] for name in SECRETS] == ["", ""]
    assert set(re.findall(r"\$\{(\w+)", text)) == set(example)
    assert "PASSWORD" not in services()["server"]["environment"]["CROSSWIND_DATABASE"]
    assert make_url(services()["server"]["environment"]["CROSSWIND_DATABASE"]).password is None


def test_the_file_with_the_secrets_stays_out_of_git() -> None:
    ignored = subprocess.run(
        ["git", "check-ignore", "--no-index", "docker/.env"], cwd=ROOT, capture_output=True, check=False
    )
    assert ignored.stdout == b"docker/.env\n"


def test_only_the_server_is_published_and_to_this_machine_alone() -> None:
    published = {name: service.get("ports", []) for name, service in services().items()}
    assert published == {"server": ["127.0.0.1:${CROSSWIND_PORT:-8321}:8321"], "database": []}
    assert last("EXPOSE") == "8321"


def test_the_server_waits_for_a_healthy_database() -> None:
    assert services()["server"]["depends_on"] == {"database": {"condition": "service_healthy"}}
    check = services()["database"]["healthcheck"]["test"]
    assert check[:2] == ["CMD", "pg_isready"]
    assert "--host=127.0.0.1" in check


def test_the_server_has_no_power_that_it_does_not_need() -> None:
    server = services()["server"]
    assert server["cap_drop"] == ["ALL"]
    assert server["read_only"] is True
    for service in services().values():
        assert "no-new-privileges:true" in service["security_opt"]
        assert not {"privileged", "network_mode", "pid", "cap_add"} & set(service)


def test_names_of_networks_and_volumes_are_declared() -> None:
    compose = yaml.safe_load((DOCKER / "compose.yaml").read_text())
    for service in compose["services"].values():
        assert set(service["networks"]) <= set(compose["networks"])
        assert {volume.partition(":")[0] for volume in service["volumes"]} <= set(compose["volumes"])
    assert compose["networks"]["inside"]["internal"] is True
    assert compose["services"]["database"]["networks"] == ["inside"]


@pytest.mark.thorough
def test_the_command_of_compose_is_one_that_the_program_takes() -> None:
    words = [re.sub(r"\$\{\w+:-(.*)\}", r"\1", word) for word in services()["server"]["command"]]
    assert words[: len(json.loads(last("CMD")))] == json.loads(last("CMD"))
    ended = subprocess.run([CROSSWIND, *words, "--help"], capture_output=True, text=True, check=False, timeout=60)
    assert ended.returncode == 0
    assert all(word in ended.stdout for word in words if word.startswith("--"))


def has_compose() -> bool:
    if shutil.which("docker") is None:
        return False
    return subprocess.run(["docker", "compose", "version"], capture_output=True, check=False).returncode == 0


@needs("docker compose", "the file was read as YAML above", unless=has_compose())
def test_compose_refuses_without_secrets_and_takes_them() -> None:
    words = ["docker", "compose", "--file", str(DOCKER / "compose.yaml"), "--env-file", os.devnull, "config", "--quiet"]
    for name in SECRETS:
        given = {other: TOKEN for other in SECRETS if other != name}
        refused = subprocess.run(words, env=environment(**given), capture_output=True, text=True, check=False)
        assert refused.returncode != 0
        assert name in refused.stderr
    subprocess.run(words, env=environment(**dict.fromkeys(SECRETS, TOKEN)), check=True)
