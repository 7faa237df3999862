"""`crosswind serve --check` of a configuration."""

import json
import socket
from pathlib import Path

import pytest
from tests.conftest import free_port

from crosswind.cli.main import main


@pytest.fixture(autouse=True)
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    for name in ("CROSSWIND_DATABASE", "CROSSWIND_TOKEN", "CROSSWIND_LAKE", "CROSSWIND_LAKE_CACHE"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("CROSSWIND_HOME", str(tmp_path / "home"))
    return tmp_path / "home"


def test_check_says_what_would_be_served_within_which_limits(home: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["serve", "--check", "--json", "--port", "0", "--limit", "headers=7"]) == 0
    said = json.loads(capsys.readouterr().out)
    assert (said["store"], said["token"], said["limits"]["headers"]) == (str(home), False, 7)
    assert said["url"].startswith("http://127.0.0.1:")
    assert main(["serve", "--check", "--uds", str(home / "socket")]) == 0
    assert "head_seconds=10" in capsys.readouterr().out
    assert not (home / "socket").exists()


def test_check_names_what_is_wrong(home: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        assert main(["serve", "--check", "--port", str(port)]) == 75
    assert f"cannot listen on 127.0.0.1:{port}, Address already in use" in capsys.readouterr().err
    assert main(["serve", "--check", "--limit", "headers=none"]) == 2
    assert "limit headers: 'none', expected a whole number" in capsys.readouterr().err
    home.joinpath("lake").mkdir(exist_ok=True)
    home.joinpath("lake", ".writing").write_text("in the way")
    assert main(["serve", "--check", "--port", "0"]) == 75
    assert "the lake takes no files: " in capsys.readouterr().err


def test_check_says_what_is_wrong_with_a_lake_in_an_object_store(
    home: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("CROSSWIND_LAKE", "s3//bucket")
    assert main(["serve", "--check", "--port", "0"]) == 2
    assert "CROSSWIND_LAKE is 's3//bucket', expected s3://BUCKET/PREFIX" in capsys.readouterr().err
    endpoint = f"127.0.0.1:{free_port()}"
    monkeypatch.setenv("CROSSWIND_LAKE", f"s3://a:b@bucket/x?region=us-east-1&scheme=http&endpoint_override={endpoint}")
    assert main(["serve", "--check", "--port", "0"]) == 75
    said = capsys.readouterr().err
    assert f"CROSSWIND_LAKE is s3://bucket/x, at http://{endpoint}, region us-east-1: it does not answer: " in said
    assert "expected an S3 endpoint, its region, an existing bucket, and rights" in said
