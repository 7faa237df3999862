"""An address of a lake that does not work: every door says so within seconds, in one paragraph and without secrets."""

import os
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest
from tests.conftest import free_port
from tests.data.lake.objects.store_of_objects import KEYS, Faults, address_of, setting_of
from tests.data.lake.objects.test_faults import DENIED, MOVED
from tests.ingest.load.test_together import FAN, NOON, sweep_rows

from crosswind.cli.main import main
from crosswind.data.lake.objects import bucket as bucket_module
from crosswind.data.schema.lake_address import LakeAddress
from crosswind.ingest.spool.spool import SpoolWriter

SECRET = "5ecret"
DOORS = {
    "check": ("serve", "--check", "--port", "0"),
    "doctor": ("doctor",),
    "status": ("lake", "status"),
    "verify": ("lake", "verify"),
    "ingest": ("ingest",),
}
ONE_EVERY_DAY = [pytest.param(door, marks=() if door == "check" else pytest.mark.thorough) for door in DOORS]
AT_ANOTHER = b"<Error><Code>PermanentRedirect</Code><Message>Use the endpoint of another region.</Message></Error>"
NO_SUCH_KEY = b"<Error><Code>InvalidAccessKeyId</Code><Message>The key does not exist</Message></Error>"
ANSWERS = {
    "denied": (403, DENIED, "s3:ListBucket, GetObject, PutObject and DeleteObject"),
    "key": (403, NO_SUCH_KEY, "try another access key"),
    "region": (400, MOVED, "expecting 'eu-west-2'"),
    "moved": (301, AT_ANOTHER, "try the bucket's own region, as AWS_REGION"),
    "page": (404, b"<html>no such page</html>", "NOT_FOUND"),
}


@pytest.fixture(autouse=True)
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A home with a segment that waits for `crosswind ingest`."""
    for name in ("CROSSWIND_DATABASE", "CROSSWIND_TOKEN", "CROSSWIND_SPOOL", *KEYS, "AWS_PROFILE", "AWS_ENDPOINT_URL"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("CROSSWIND_HOME", str(tmp_path / "home"))
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("AWS_EC2_METADATA_DISABLED", "true")
    monkeypatch.setattr(bucket_module, "KNOCK_SECONDS", 0.5)
    with SpoolWriter(tmp_path / "home" / "spool", "agent.n1") as writer:
        writer.append_sweep([sweep_rows(FAN, "n1", NOON, 2.5)])
    return tmp_path / "home"


@pytest.fixture
def silent() -> Iterator[int]:
    """A port that takes connections and never answers."""
    with socket.create_server(("127.0.0.1", 0)) as listening:
        yield listening.getsockname()[1]


def said_at(
    door: str, address: LakeAddress, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> str:
    """Return what is wrong with the address, as a door says it."""
    monkeypatch.setenv("CROSSWIND_LAKE", setting_of(address))
    assert main(list(DOORS[door])) == (1 if door == "doctor" else 75)
    output = capsys.readouterr()
    lines = [line for line in (output.out + output.err).splitlines() if "CROSSWIND_LAKE" in line]
    [said] = lines
    assert SECRET not in output.out + output.err
    assert "Traceback" not in output.err
    assert f"CROSSWIND_LAKE is {address}, at http://{address.endpoint}, region us-east-1: " in said
    assert "expected an S3 endpoint, its region, an existing bucket, and rights" in said
    assert "; try " in said
    return said


@pytest.mark.parametrize(
    ("door", "answer"),
    [
        pytest.param(door, answer, marks=() if door == "check" or answer == "denied" else pytest.mark.thorough)
        for door in DOORS
        for answer in ANSWERS
    ],
)
def test_what_the_store_answers_is_said_at_every_door(
    proxied: tuple[LakeAddress, Faults],
    door: str,
    answer: str,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    address, faults = proxied
    status, body, words = ANSWERS[answer]
    faults.act = lambda request: request.say(status, body)
    assert words in said_at(door, replace(address, secret_key=SECRET), monkeypatch, capsys)


@pytest.mark.parametrize("door", ONE_EVERY_DAY)
def test_a_missing_bucket_is_said(
    s3_port: int, door: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    said = said_at(door, address_of(s3_port, "no-such-bucket"), monkeypatch, capsys)
    assert "try to create the bucket no-such-bucket, or to correct its name" in said


@pytest.mark.parametrize("door", ONE_EVERY_DAY)
def test_lacking_credentials_are_said(
    proxied: tuple[LakeAddress, Faults],
    door: str,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    address, faults = proxied
    faults.act = lambda request: request.say(403, DENIED)
    said = said_at(door, replace(address, access_key=None, secret_key=None), monkeypatch, capsys)
    assert "try AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY: there are no credentials" in said


@pytest.mark.parametrize("door", ONE_EVERY_DAY)
def test_an_endpoint_that_is_not_there_is_said(
    door: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    begin, port = time.monotonic(), free_port()
    assert f"try `curl -i http://127.0.0.1:{port}`" in said_at(door, address_of(port, "bucket"), monkeypatch, capsys)
    assert time.monotonic() - begin < 8


@pytest.mark.parametrize("door", ONE_EVERY_DAY)
def test_a_wrong_scheme_is_said(door: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setenv("CROSSWIND_LAKE", f"s4://key:{SECRET}@bucket/lake")
    assert main(list(DOORS[door])) == (1 if door == "doctor" else 2)
    output = capsys.readouterr()
    assert "CROSSWIND_LAKE is 's4://…@bucket/lake', expected s3://BUCKET/PREFIX" in output.out + output.err
    assert SECRET not in output.out + output.err


def test_the_doctor_says_that_an_address_works(
    address: LakeAddress, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("CROSSWIND_LAKE", setting_of(address))
    main(["doctor"])
    assert f"{address} takes, returns and removes objects" in capsys.readouterr().out


def test_a_slow_store_is_said(
    proxied: tuple[LakeAddress, Faults], monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    address, faults = proxied
    monkeypatch.setattr(bucket_module, "CHECK_SECONDS", 1.0)
    faults.act = lambda _: time.sleep(0.4) is not None
    said = said_at("check", address, monkeypatch, capsys)
    assert "it is too slow: an object was not written, read and removed within 1 s" in said


def test_a_process_ends_within_seconds_where_nothing_answers(silent: int, home: Path) -> None:
    environment = os.environ | {"CROSSWIND_LAKE": setting_of(address_of(silent, "bucket")), "CROSSWIND_HOME": str(home)}
    command = [sys.executable, "-m", "crosswind.cli.main", "lake", "status"]
    begin = time.monotonic()
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    assert time.monotonic() - begin < 15  # with its start
    assert done.returncode == 75
    assert done.stderr.startswith("crosswind: CROSSWIND_LAKE is s3://bucket/lake, at http://127.0.0.1:")
    assert done.stderr.count("\n") == 1
