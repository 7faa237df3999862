"""`crosswind lake` looks at a lake in an object store as at one in a folder, and names what the store has lost."""

import json
from collections import Counter
from collections.abc import Callable
from pathlib import Path

import pytest
from tests.data.lake.objects.store_of_objects import Faults, Proxied, setting_of
from tests.data.lake.objects.test_mirror import columns, merge, objects, put

from crosswind.cli.main import main
from crosswind.data.lake.lake import to_table
from crosswind.data.lake.objects.bucket import Bucket
from crosswind.data.schema.lake_address import LakeAddress
from crosswind.data.schema.steps import STEP
from crosswind.data.store.store import Store

Ask = Callable[..., tuple[int, str, str]]


@pytest.fixture
def ask(
    proxied: tuple[LakeAddress, Faults],
    database: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> Ask:
    """Code, output and errors of `crosswind lake` in a home without a copy, through the proxy."""
    monkeypatch.setenv("CROSSWIND_LAKE", setting_of(proxied[0]))
    monkeypatch.setenv("CROSSWIND_DATABASE", database)
    monkeypatch.setenv("CROSSWIND_HOME", str(tmp_path / "asking"))

    def ask(*words: str) -> tuple[int, str, str]:
        code = main(["lake", *words])
        return code, *capsys.readouterr()

    return ask


def fill(store: Store) -> int:
    """Store a compacted file, a part, two objects that were replaced and one that nobody names; the rows that count."""
    put(store.lake, 0, 1)
    merge(store.lake)
    put(store.lake, 2)
    store.lake.publish(store.lake.stage({"lost": to_table(STEP, columns(2))}))  # type: ignore[arg-type]
    return 30


def reads(faults: Faults) -> Counter[str]:
    """Return how often each object was read."""
    return Counter(line for line in faults.log if line.startswith("GET") and "/set%3D" in line.replace("=", "%3D"))


def test_the_status_reads_the_catalog_and_the_listing_alone(
    store: Store, ask: Ask, proxied: tuple[LakeAddress, Faults]
) -> None:
    rows = fill(store)
    code, output, _ = ask("status", "--json")
    answer = json.loads(output)
    [of_steps] = answer["sets"]
    assert code == 0
    assert [of_steps[name] for name in ("days", "files", "rows")] == [1, 2, rows]
    assert of_steps["bytes"] == sum(path.stat().st_size for path in store.lake.parts("step"))
    assert (of_steps["oldest_ns"], of_steps["newest_ns"]) == (0, 2 * 60 * 10**9 + 4)
    counts = [answer["inventory"][name] for name in ("problems", "replaced", "unnamed")]
    assert counts == [[], 2, 1]
    assert not [path for path in reads(proxied[1]) if "list-type" not in path]
    assert "Besides, 2 objects" in (said := ask("status")[1])
    assert "Besides, 1 objects" in said


def test_a_lake_that_is_whole_is_read_once(store: Store, ask: Ask, proxied: tuple[LakeAddress, Faults]) -> None:
    rows = fill(store)
    code, output, _ = ask("verify")
    assert (code, output.splitlines()[0]) == (0, f"2 files with {rows} rows are whole, 0 problems.")
    of_parts = {path: count for path, count in reads(proxied[1]).items() if "part-" in path and "list-type" not in path}
    assert list(of_parts.values()) == [1, 1, 1]  # with the manifest
    assert "Besides, 2 objects" in output


def key_of(address: LakeAddress, part: str) -> str:
    [key] = [key for key in objects(address) if key.endswith(part)]
    return key


@pytest.mark.parametrize("action", ["status", "verify"])
@pytest.mark.parametrize("name", ["part-b1-0.parquet", "_schema"])
def test_a_missing_object_is_named_and_the_others_are_read(
    store: Store, ask: Ask, address: LakeAddress, action: str, name: str
) -> None:
    put(store.lake, 0, 1, 2)
    [key] = [key for key in objects(address) if name in key]
    Bucket(address).remove([key])
    code, output, errors = ask(action, "--json")
    answer = json.loads(output)
    assert (code, errors) == (1, "")
    [problem] = answer["problems"]
    assert key in problem
    assert "not there" in problem
    assert answer["inventory"]["problems"] == [f"object {key} is not there"]
    if action == "verify":
        assert answer["files"] == (2 if name.startswith("part") else 3)


@pytest.mark.parametrize(("size", "says"), [(-9, "is cut off: it has"), (0, "is not what was stored: its SHA-256")])
@pytest.mark.parametrize("is_compacted", [True, False])
def test_an_object_that_was_cut_or_changed_is_named(
    store: Store, ask: Ask, address: LakeAddress, tmp_path: Path, size: int, says: str, is_compacted: bool
) -> None:
    put(store.lake, 0, 1, 2)
    if is_compacted:
        merge(store.lake)
    path = store.lake.parts("step")[0]
    content = bytearray(path.read_bytes())
    content[len(content) // 2] ^= 1
    (tmp_path / "changed").write_bytes(content[: size or None])
    key = path.relative_to(store.lake.root).as_posix()
    Bucket(address).put(key, tmp_path / "changed")
    code, output, errors = ask("verify")
    assert code == 1
    assert errors.count("\n") == 1
    assert key in errors
    assert says in errors
    assert output.startswith(f"{0 if is_compacted else 2} files with")
    assert ask("status")[0] == (1 if size else 0)  # which reads none


def test_an_object_that_is_listed_late_is_not_missing(
    store: Store, ask: Ask, proxied: tuple[LakeAddress, Faults]
) -> None:
    put(store.lake, 0)
    nothing = b"<ListBucketResult><IsTruncated>false</IsTruncated></ListBucketResult>"
    proxied[1].act = lambda request: "list-type" in request.path and request.say(200, nothing)
    assert ask("status")[::2] == (0, "")


def test_a_store_that_goes_away_in_between_is_no_damage(
    store: Store, ask: Ask, proxied: tuple[LakeAddress, Faults], monkeypatch: pytest.MonkeyPatch
) -> None:
    put(store.lake, 0, 1)
    faults = proxied[1]
    monkeypatch.setattr(Bucket, "__init__", _impatient)

    def act(request: Proxied) -> bool:
        return request.method == "GET" and "part-b1" in request.path and request.busy()

    faults.act = act
    code, output, errors = ask("verify")
    assert (code, output) == (75, "")
    assert "part-b1-0.parquet cannot be read" in errors


def _impatient(bucket: Bucket, address: LakeAddress) -> None:
    bucket.address, bucket.answers, bucket._patience_seconds, bucket._unanswered = address, False, 1.0, (-9.0, "")
