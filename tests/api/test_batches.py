import gzip
import hashlib
import os
import threading
import zlib
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from backports import zstd
from starlette.testclient import TestClient
from tests.serving import own_client

from crosswind.api.app import create_app
from crosswind.api.settings import ServerSettings
from crosswind.data.store.store import Store

from .segments import HEAT, MEDIA, frames, headers_of, segment, stored_rows, sweeps

URL = "/v1/ingest/batches"
NAME = "00000000000000000001-0123abcd.agent.n1.segment"


@pytest.fixture
def empty(tmp_path: Path) -> Iterator[Store]:
    with Store.open(tmp_path / "home") as store:
        yield store


@pytest.fixture
def sender(empty: Store) -> Iterator[TestClient]:
    with own_client(create_app(empty), base_url="http://localhost:8000") as client:
        yield client


def raw(spool: Path, content: bytes, name: str = NAME) -> Path:
    spool.mkdir(exist_ok=True)
    path = spool / name
    path.write_bytes(content)
    return path


CODINGS = {"identity": bytes, "gzip": gzip.compress, "zstd": zstd.compress}


@pytest.mark.parametrize("coding", CODINGS)
def test_a_batch_is_stored_once_and_its_sender_notified(sender: TestClient, tmp_path: Path, coding: str) -> None:
    path = segment(tmp_path / "spool")
    body, headers = CODINGS[coding](path.read_bytes()), headers_of(path, coding)
    first = sender.post(URL, content=body, headers=headers)
    facts = {"batch_id": headers["Crosswind-Batch"], "problems": []}
    assert (first.status_code, first.json()) == (201, {**facts, "status": "stored", "rows": 3})
    again = sender.post(URL, content=body, headers=headers)
    assert (again.status_code, again.json()) == (200, {**facts, "status": "duplicate", "rows": 0})
    assert stored_rows(tmp_path / "home") == [("agent.n1", 0), ("agent.n1", 1), ("agent.n1", 2)]
    assert sorted(path.name for path in (tmp_path / "home").iterdir() if path.is_dir()) == ["lake", "rejected"]


def test_batches_may_come_in_any_order(sender: TestClient, tmp_path: Path) -> None:
    paths = [segment(tmp_path / "spool", first=3 * number) for number in range(4)]
    for path in [paths[2], paths[0], paths[3], paths[2], paths[1]]:
        assert sender.post(URL, content=path.read_bytes(), headers=headers_of(path)).status_code in {200, 201}
    assert [number for _, number in stored_rows(tmp_path / "home")] == list(range(12))


def test_the_same_content_of_two_origins_is_two_batches(sender: TestClient, tmp_path: Path) -> None:
    content = segment(tmp_path / "spool").read_bytes()
    for node in ("n1", "n2"):
        path = raw(tmp_path / "sent", content, NAME.replace("n1", node))
        assert sender.post(URL, content=content, headers=headers_of(path)).status_code == 201
    assert len(stored_rows(tmp_path / "home")) == 6


def test_a_body_that_was_cut_off_is_refused_and_nothing_stored(sender: TestClient, tmp_path: Path) -> None:
    path = segment(tmp_path / "spool")
    for coding, packed in CODINGS.items():
        answer = sender.post(URL, content=packed(path.read_bytes())[:-5], headers=headers_of(path, coding))
        assert answer.status_code == (422 if coding == "identity" else 400), answer.text
    assert stored_rows(tmp_path / "home") == []


def test_other_content_under_the_id_of_a_stored_batch_is_refused(sender: TestClient, tmp_path: Path) -> None:
    path, other = segment(tmp_path / "spool"), segment(tmp_path / "other", first=50)
    assert sender.post(URL, content=path.read_bytes(), headers=headers_of(path)).status_code == 201
    answer = sender.post(URL, content=other.read_bytes(), headers=headers_of(path))
    assert (answer.status_code, "with this content is" in answer.json()["detail"]) == (422, True)
    assert len(stored_rows(tmp_path / "home")) == 3


@pytest.mark.parametrize(
    "name",
    [
        "../../../etc/cron.d/x.segment",
        "00000000000000000001-0123abcd.../../x.segment",
        "00000000000000000001-0123abcd.agent/n1.segment",
        "/00000000000000000001-0123abcd.agent.n1.segment",
        "00000000000000000001-0123abcd.agent.n1.segment/..",
        "00000000000000000001-0123abcd..segment",
        "00000000000000000001-0123abcd.agent.n1.open",
        "agent.n1.segment",
        "00000000000000000001-0123abcd." + "n" * 101 + ".segment",
        "",
    ],
)
def test_a_name_that_is_no_segments_is_refused_and_makes_no_file(sender: TestClient, tmp_path: Path, name: str) -> None:
    content = segment(tmp_path / "spool").read_bytes()
    before = sorted(tmp_path.rglob("*"))
    headers = {"Crosswind-Batch": "0" * 64, "Crosswind-Segment": name, "Content-Type": MEDIA}
    answer = sender.post(URL, content=content, headers=headers)
    assert (answer.status_code, answer.headers["content-type"]) == (422, "application/problem+json")
    assert sorted(tmp_path.rglob("*")) == before


@pytest.mark.parametrize("missing", ["Crosswind-Batch", "Crosswind-Segment"])
def test_a_batch_without_its_id_or_name_is_refused(sender: TestClient, tmp_path: Path, missing: str) -> None:
    path = segment(tmp_path / "spool")
    headers = {name: text for name, text in headers_of(path).items() if name != missing}
    answer = sender.post(URL, content=path.read_bytes(), headers=headers)
    assert answer.status_code == 422
    assert answer.json()["errors"][0]["field"] == f"header.{missing.lower()}"


@pytest.mark.parametrize("identity", ["", "0" * 63, "G" * 64, "0" * 65, f"{'0' * 63}/"])
def test_an_id_that_is_no_hash_is_refused(sender: TestClient, tmp_path: Path, identity: str) -> None:
    path = segment(tmp_path / "spool")
    headers = headers_of(path) | {"Crosswind-Batch": identity}
    assert sender.post(URL, content=path.read_bytes(), headers=headers).status_code == 422


def test_json_is_not_taken_for_a_segment_nor_a_segment_for_json(sender: TestClient, tmp_path: Path) -> None:
    path = segment(tmp_path / "spool")
    headers = headers_of(path) | {"Content-Type": "application/json"}
    assert sender.post(URL, content=path.read_bytes(), headers=headers).status_code == 415
    assert sender.post("/v1/studies", content=path.read_bytes(), headers=headers_of(path)).status_code == 415


def test_an_unknown_coding_is_refused_with_those_that_are_known(sender: TestClient, tmp_path: Path) -> None:
    path = segment(tmp_path / "spool")
    answer = sender.post(URL, content=path.read_bytes(), headers=headers_of(path, "br"))
    assert (answer.status_code, answer.headers["accept-encoding"]) == (415, "zstd, gzip, identity")


@pytest.mark.parametrize("coding", ["zstd", "gzip"])
def test_a_bomb_is_refused_after_its_first_bytes(empty: Store, tmp_path: Path, coding: str) -> None:
    client = own_client(create_app(empty, ServerSettings(segment_bytes=1_000_000)), base_url="http://localhost")
    path = segment(tmp_path / "spool")
    bomb = CODINGS[coding](bytes(100_000_000))
    assert len(bomb) < 200_000
    answer = client.post(URL, content=bomb, headers=headers_of(path, coding))
    assert (answer.status_code, answer.json()["detail"]) == (413, "segment: expected at most 1000000 bytes unpacked")
    assert stored_rows(tmp_path / "home") == []


def test_a_frame_that_asks_for_a_huge_window_is_refused(sender: TestClient, tmp_path: Path) -> None:
    path = segment(tmp_path / "spool")
    options = {zstd.CompressionParameter.window_log: 27, zstd.CompressionParameter.content_size_flag: 0}
    packer = zstd.ZstdCompressor(options=options)
    body = packer.compress(path.read_bytes()) + packer.flush()
    answer = sender.post(URL, content=body, headers=headers_of(path, "zstd"))
    assert (answer.status_code, "window of at most 8 MB" in answer.json()["detail"]) == (400, True)


@pytest.mark.parametrize("coding", ["zstd", "gzip"])
def test_bytes_behind_the_end_and_noise_are_refused(sender: TestClient, tmp_path: Path, coding: str) -> None:
    path = segment(tmp_path / "spool")
    packed = CODINGS[coding](path.read_bytes())
    for body in (packed + b"more", packed + packed, os.urandom(1000), b""):
        assert sender.post(URL, content=body, headers=headers_of(path, coding)).status_code == 400


def test_a_body_beyond_the_limit_is_refused(empty: Store, tmp_path: Path) -> None:
    client = own_client(create_app(empty, ServerSettings(batch_bytes=100)), base_url="http://localhost")
    path = segment(tmp_path / "spool")
    answer = client.post(URL, content=path.read_bytes(), headers=headers_of(path))
    assert (answer.status_code, answer.headers["connection"]) == (413, "close")


def test_without_the_token_no_batch_is_taken(empty: Store, tmp_path: Path) -> None:
    settings = ServerSettings(token="0123456789abcdef", require_token=True)
    client = own_client(create_app(empty, settings), base_url="http://localhost")
    path = segment(tmp_path / "spool")
    assert client.post(URL, content=path.read_bytes(), headers=headers_of(path)).status_code == 401
    headers = headers_of(path) | {"Authorization": "Bearer 0123456789abcdef"}
    assert client.post(URL, content=path.read_bytes(), headers=headers).status_code == 201


def test_a_segment_that_cannot_be_read_at_all_is_refused(sender: TestClient, tmp_path: Path) -> None:
    for content in (b"", b"not a segment", os.urandom(500), frames([])):
        path = raw(tmp_path / "spool", content)
        answer = sender.post(URL, content=content, headers=headers_of(path))
        assert answer.status_code == 422
        assert NAME in answer.json()["detail"]
        assert str(tmp_path) not in answer.text


def test_what_is_understood_of_a_segment_is_stored_and_the_whole_kept_aside(sender: TestClient, tmp_path: Path) -> None:
    understood = segment(tmp_path / "spool").read_bytes()
    path = raw(tmp_path / "spool", understood + frames({"kind": "record", "record": "weather", "value": {"wind": 3}}))
    answer = sender.post(URL, content=path.read_bytes(), headers=headers_of(path))
    assert (answer.status_code, answer.json()["status"], answer.json()["rows"]) == (201, "partial", 3)
    [problem] = answer.json()["problems"]
    assert problem.startswith(f"{NAME}: record 'weather': expected run, rank, ")
    [kept] = (tmp_path / "home" / "rejected").iterdir()
    assert kept.name == f"{headers_of(path)['Crosswind-Batch'][:32]}-{NAME}"
    assert kept.read_bytes() == path.read_bytes()
    assert sender.post(URL, content=path.read_bytes(), headers=headers_of(path)).json()["status"] == "duplicate"


def test_a_torn_tail_is_reported_and_what_stands_before_it_stored(sender: TestClient, tmp_path: Path) -> None:
    path = raw(tmp_path / "spool", segment(tmp_path / "spool").read_bytes() + b"\x40\x00\x00\x00torn")
    answer = sender.post(URL, content=path.read_bytes(), headers=headers_of(path))
    assert (answer.json()["status"], answer.json()["rows"]) == ("partial", 3)
    assert str(tmp_path) not in answer.text


def test_what_is_kept_aside_has_a_limit_and_the_oldest_goes(empty: Store, tmp_path: Path) -> None:
    client = own_client(create_app(empty, ServerSettings(rejected_bytes=250)), base_url="http://localhost")
    for number in range(5):
        odd = frames({"kind": "record", "record": "weather", "value": {"wind": "x" * 50, "number": number}})
        path = raw(tmp_path / "spool", odd)
        assert client.post(URL, content=odd, headers=headers_of(path)).status_code == 201
        newest = headers_of(path)["Crosswind-Batch"][:32]
    kept = list((tmp_path / "home" / "rejected").iterdir())
    assert 0 < sum(file.stat().st_size for file in kept) <= 250
    assert newest in {file.name[:32] for file in kept}


def test_a_store_that_cannot_be_written_is_a_503_and_the_batch_is_taken_later(
    sender: TestClient, tmp_path: Path
) -> None:
    path = segment(tmp_path / "spool")
    (tmp_path / "home" / "lake").rename(tmp_path / "aside")
    (tmp_path / "home" / "lake").write_text("a file is in the way")
    answer = sender.post(URL, content=path.read_bytes(), headers=headers_of(path))
    assert (answer.status_code, answer.headers["retry-after"]) == (503, "5")
    assert str(tmp_path) not in answer.text
    (tmp_path / "home" / "lake").unlink()
    (tmp_path / "aside").rename(tmp_path / "home" / "lake")
    assert sender.post(URL, content=path.read_bytes(), headers=headers_of(path)).status_code == 201
    assert len(stored_rows(tmp_path / "home")) == 3


def test_one_batch_sent_many_times_at_once_is_stored_once(sender: TestClient, tmp_path: Path) -> None:
    path = segment(tmp_path / "spool", rows=200)
    content, headers, statuses = path.read_bytes(), headers_of(path), []

    def send() -> None:
        statuses.append(sender.post(URL, content=content, headers=headers).json()["status"])

    threads = [threading.Thread(target=send) for _ in range(12)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(timeout=60)
    assert sorted(statuses) == ["duplicate"] * 11 + ["stored"]
    assert len(stored_rows(tmp_path / "home")) == 200


def test_the_id_of_a_batch_is_the_hash_of_origin_and_content(tmp_path: Path) -> None:
    path = raw(tmp_path / "spool", frames({"kind": "set", "set": HEAT.as_json()}))
    assert headers_of(path)["Crosswind-Batch"] == hashlib.sha256(b"agent.n1\0" + path.read_bytes()).hexdigest()


def test_gzip_of_the_smallest_window_is_taken_as_well(sender: TestClient, tmp_path: Path) -> None:
    path = segment(tmp_path / "spool")
    packer = zlib.compressobj(wbits=16 + 9)
    body = packer.compress(path.read_bytes()) + packer.flush()
    assert sender.post(URL, content=body, headers=headers_of(path, "gzip")).status_code == 201


def test_batches_of_many_agents_at_once_are_each_stored_once(sender: TestClient, tmp_path: Path) -> None:
    paths = [sweeps(tmp_path / f"n{number}", f"n{number}") for number in range(24)]
    with ThreadPoolExecutor(12) as threads:
        sent = [threads.submit(_post, sender, path) for path in [*paths, *paths]]
    assert sorted(answer.result() for answer in sent) == ["duplicate"] * 24 + ["stored"] * 24
    assert len(stored_rows(tmp_path / "home")) == 24 * 3


def _post(sender: TestClient, path: Path) -> str:
    status: str = sender.post(URL, content=path.read_bytes(), headers=headers_of(path)).json()["status"]
    return status
