"""`crosswind lake` looks at a lake in an object store as at one in a folder."""

import json
from pathlib import Path

import pytest
from tests.data.lake.objects.test_mirror import merge, put

from crosswind.cli.main import main
from crosswind.data.schema.lake_address import LakeAddress
from crosswind.data.store.store import Store


def test_its_size_is_shown_and_its_files_are_read(
    address: LakeAddress, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    keys, place = f"{address.access_key}:{address.secret_key}", f"{address.bucket}/{address.prefix}"
    options = f"region={address.region}&scheme={address.scheme}&endpoint_override={address.endpoint}"
    monkeypatch.setenv("CROSSWIND_LAKE", f"s3://{keys}@{place}?{options}")
    monkeypatch.setenv("CROSSWIND_HOME", str(tmp_path / "home"))
    with Store.open(tmp_path / "home", lake=address) as store:
        put(store.lake, 0, 1)
        merge(store.lake)
        put(store.lake, 2)
        rows = store.lake.table("select count(*) as rows from step")["rows"][0].as_py()
    assert main(["lake", "status", "--json"]) == 0
    [of_steps] = json.loads(capsys.readouterr().out)["sets"]
    assert [of_steps[name] for name in ("days", "files", "rows")] == [1, 2, rows]
    assert main(["lake", "verify"]) == 0
    assert capsys.readouterr().out == f"2 files with {rows} rows are whole, 0 problems.\n"
