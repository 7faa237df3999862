"""Real servers over a bucket answer as one over a folder, whatever is killed, and go on after the bucket was away."""

import http.client
import json
import os
import re
import shutil
import subprocess
import sys
import time
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from urllib.parse import urlsplit

import pyarrow.compute as pc
import pyarrow.parquet as pq
import pytest
from tests.api.conftest import START_NS, run, step_columns
from tests.api.openapi.sample_store import ACCOUNTING, write_part_of_samples
from tests.api.segments import headers_of
from tests.data.lake.objects.store_of_objects import Faults, Proxied, setting_of
from tests.ingest.load.test_together import FAN, NIC, sweep_rows
from tests.serving import serving

from crosswind.data.samples.lab_runs import load_lab_runs
from crosswind.data.schema.lake_address import LakeAddress
from crosswind.data.schema.run import Run
from crosswind.data.schema.steps import STEP
from crosswind.data.store.store import Store
from crosswind.ingest.spool.spool import SpoolWriter, sealed_segments

SECOND = 1_000_000_000
FROM, TO = "2026-01-02T03:00:00Z", "2026-01-02T04:00:00Z"
SERIES = f"/v1/series?metric=fan.fan_hertz,nic.nic_rx_bytes_total&node=n1&from={FROM}&to={TO}&step=60s"


@dataclass
class Site:
    """A server that may be killed and started again, and another one beside it."""

    home: Path
    environment: Mapping[str, str]

    def ingest(self, *words: str) -> None:
        """Store files with `crosswind ingest`."""
        kept = {name: value for name, value in os.environ.items() if not name.startswith("CROSSWIND_")}
        environment = kept | {"CROSSWIND_HOME": str(self.home), "CROSSWIND_SYSTEM": "lab"} | self.environment
        subprocess.run([sys.executable, "-m", "crosswind.cli.main", "ingest", *words], check=True, env=environment)

    @property
    def address(self) -> LakeAddress | None:
        """The lake's address."""
        setting = self.environment.get("CROSSWIND_LAKE")
        return LakeAddress.of(setting) if setting else None


def asked(url: str, path: str) -> tuple[int, str]:
    """Return status and content of an answer."""
    status, _, content = answered(url, path)
    return status, content


def answered(
    url: str, path: str, body: bytes | None = None, headers: Mapping[str, str] | None = None
) -> tuple[int, Mapping[str, str], str]:
    connection = http.client.HTTPConnection(urlsplit(url).netloc, timeout=60)
    try:
        connection.request("GET" if body is None else "POST", path, body, dict(headers or {}))
        answer = connection.getresponse()
        return answer.status, {name.lower(): value for name, value in answer.getheaders()}, answer.read().decode()
    finally:
        connection.close()


def sent(url: str, segment: Path) -> int:
    return sent_whole(url, segment)[0]


def sent_whole(url: str, segment: Path) -> tuple[int, Mapping[str, str], str]:
    return answered(url, "/v1/ingest/batches", segment.read_bytes(), headers_of(segment))


def segments_of_a_site(folder: Path) -> list[Path]:
    """Segments of two nodes' agents and of the probes of eight runs."""
    for node in ("n1", "n2"):
        for minute in range(3):
            with SpoolWriter(folder / node, f"agent.{node}") as writer:
                for second in range(10):
                    ts_ns = START_NS + (60 * minute + second) * SECOND
                    values = ((FAN, 2.5 + second), (NIC, 7 + second))
                    writer.append_sweep([sweep_rows(one, node, ts_ns, value) for one, value in values])
    with SpoolWriter(folder / "runs", "run.r0") as writer:
        for number in range(8):
            writer.append_record("run", record_of(run(f"r{number}", number)))
        writer.append_rows(STEP, step_columns())
    return [segment for spool in sorted(folder.iterdir()) for segment in sealed_segments(spool)]


def record_of(one: Run) -> dict[str, object]:
    """Return a run as a probe says it."""
    return {name: value for name, value in asdict(one).items() if value is not None and name != "shared"}


def fill(site: Site, samples: Path, accounting: Path) -> None:
    """Store the sample runs, and files of accounting by `crosswind ingest`."""
    database = site.environment.get("CROSSWIND_DATABASE")
    with Store.open(site.home, database=database, lake=site.address) as store:
        load_lab_runs(store, samples)
    site.ingest(str(accounting))


@pytest.fixture(scope="module")
def segments(tmp_path_factory: pytest.TempPathFactory) -> list[Path]:
    return segments_of_a_site(tmp_path_factory.mktemp("spools"))


@pytest.fixture(scope="module")
def samples(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("samples") / "lab"
    write_part_of_samples(folder, '"batch": 64,.*"link": "direct"')
    keep(folder, 12)
    return folder


def keep(folder: Path, count: int) -> None:
    """Leave so many runs of a folder of sample runs, which is enough to explain one of them."""
    kept = pq.read_table(folder / "runs.parquet")["run_id"][:count]
    for path in folder.glob("*.parquet"):
        table = pq.read_table(path)
        if "run_id" in table.column_names:
            pq.write_table(table.filter(pc.is_in(table["run_id"], kept)), path)


@pytest.fixture(scope="module")
def accounting(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("accounting") / "sacct.txt"
    path.write_text(ACCOUNTING)
    return path


@pytest.fixture(scope="module")
def of_folder(
    segments: list[Path], samples: Path, accounting: Path, tmp_path_factory: pytest.TempPathFactory
) -> Mapping[str, str]:
    """The answers of a server whose lake is in a folder, by path."""
    site = Site(tmp_path_factory.mktemp("folder") / "home", {})
    fill(site, samples, accounting)
    with serving(site.home) as (url, _):
        for segment in segments:
            status, _, content = sent_whole(url, segment)
            assert (status, json.loads(content)["problems"]) == (201, [])
        answers = {path: steady(url, path) for path in paths(url)}
        assert {answer[:4] for answer in answers.values()} == {"200 "}
        return answers


def paths(url: str) -> list[str]:
    """Return what is compared: lists, runs and the page of one, series, explanations."""
    runs = [one["run_id"] for one in json.loads(asked(url, "/v1/runs?limit=200")[1])["runs"]]
    [explained, *_] = (name for name in runs if not re.fullmatch("r[0-7]", name))
    of_runs = [f"/v1/runs/{name}/{what}" for name in (explained, "r3") for what in ("steps", "explanation")]
    return ["/v1/runs?limit=200", "/v1/jobs", "/v1/nodes", "/v1/metrics", "/v1/runs/r3", SERIES, *of_runs, "/runs/r3"]


def steady(url: str, path: str) -> str:
    """Return an answer, once it is computed, without what differs from server to server: nonces, and when data came."""
    for _ in range(60):
        status, content = asked(url, path)
        if status != 503:
            break
        time.sleep(1)
    content = re.sub(r"-?\d+\.\d+(e-?\d+)?", lambda match: f"{float(match[0]):.9g}", content)  # sums in another order
    content = re.sub(r'nonce="[^"]*"|nonce-[\w+/=-]+', "", content)
    content = re.sub(r'"(received|last_seen|stored|created)[a-z_]*":\s*("[^"]*"|\d+)', "", content)
    return f"{status} {content}"


@pytest.fixture(params=[pytest.param("sqlite", marks=pytest.mark.thorough), "postgresql"])
def site(request: pytest.FixtureRequest, proxied: tuple[LakeAddress, Faults], tmp_path: Path) -> Site:
    """A site whose lake is in the bucket, behind the proxy."""
    if request.param == "sqlite":
        database = f"sqlite:///{tmp_path / 'catalog.sqlite'}"
    else:
        database = request.getfixturevalue("postgres_url")
    return Site(tmp_path / "home", {"CROSSWIND_LAKE": setting_of(proxied[0]), "CROSSWIND_DATABASE": database})


def test_what_a_killed_server_acknowledged_is_there_once_and_for_all_servers(
    site: Site,
    proxied: tuple[LakeAddress, Faults],
    of_folder: Mapping[str, str],
    segments: list[Path],
    samples: Path,
    accounting: Path,
    tmp_path: Path,
) -> None:
    faults = proxied[1]
    fill(site, samples, accounting)
    lose(site, faults, segments[:1], is_stored=False)
    lose(site, faults, segments[1:], is_stored=True)
    with (
        serving(site.home, environment=site.environment) as (url, _),
        serving(tmp_path / "second", environment=site.environment) as (second, _),
    ):
        again = [sent(url, segment) for segment in segments]
        assert again == [201, *[200] * (len(segments) - 2), 201]
        assert {sent(second, segment) for segment in segments} == {200}
        for path, expected in of_folder.items():
            assert steady(second, path) == expected, path
            if "explanation" not in path:  # seconds of work, of which one server is enough
                assert steady(url, path) == expected, path


def lose(site: Site, faults: Faults, segments: list[Path], *, is_stored: bool) -> None:
    """Send segments to a server that is killed while it uploads a part of the last, before or after it is there."""
    with serving(site.home, environment=site.environment) as (url, process):
        assert [sent(url, segment) for segment in segments[:-1]] == [201] * (len(segments) - 1)

        def act(request: Proxied) -> bool:
            if process.poll() is not None or not (request.is_write and "/part-" in request.path):
                return False
            if is_stored:
                request.handler.forwarded(request.method, request.path, request.body)
            process.kill()
            process.wait()
            return request.cut_off()

        faults.act = act
        with pytest.raises((http.client.HTTPException, OSError)):
            sent(url, segments[-1])
        faults.act = lambda _: False
        assert process.wait() == -9


def test_a_server_goes_on_after_its_bucket_was_away(
    proxied: tuple[LakeAddress, Faults], segments: list[Path], tmp_path: Path
) -> None:
    address, faults = proxied
    site = Site(tmp_path / "home", {"CROSSWIND_LAKE": setting_of(address)})
    log = tmp_path / "log"
    with log.open("w") as stderr, serving(site.home, stderr=stderr, environment=site.environment) as (url, _):
        assert sent(url, segments[0]) == 201
        assert asked(url, SERIES)[0] == 200
        assert asked(url, "/readyz")[0] == 200
        faults.act = lambda request: request.busy()
        status, headers, content = sent_whole(url, segments[1])
        assert (status, headers["retry-after"]) == (503, "5"), content
        begin = time.monotonic()
        status, content = asked(url, "/readyz")
        assert status == 503
        assert "CROSSWIND_LAKE is s3://" in content
        assert asked(url, SERIES)[0] == 200  # of copies
        shutil.rmtree(next(iter((site.home / "lake-copies").glob("set=fan"))))
        status, headers, content = answered(url, SERIES.replace("60s", "30s"))
        assert (status, headers["retry-after"]) == (503, "5"), content
        assert sent(url, segments[1]) == 503
        assert time.monotonic() - begin < 20  # it is not waited for again and again
        assert asked(url, "/healthz")[0] == 200
        faults.act = lambda _: False
        time.sleep(2.1)
        assert asked(url, "/readyz")[0] == 200
        assert [sent(url, segment) for segment in segments[:2]] == [200, 201]
        assert asked(url, SERIES.replace("60s", "30s"))[0] == 200
    assert "Traceback" not in log.read_text()


def test_a_server_starts_while_its_bucket_is_away(
    proxied: tuple[LakeAddress, Faults], segments: list[Path], tmp_path: Path
) -> None:
    address, faults = proxied
    site, log = Site(tmp_path / "home", {"CROSSWIND_LAKE": setting_of(address)}), tmp_path / "log"
    with serving(site.home, environment=site.environment) as (url, _):
        assert sent(url, segments[0]) == 201
    faults.act = lambda request: request.busy()
    with log.open("w") as stderr, serving(site.home, stderr=stderr, environment=site.environment) as (url, _):
        assert asked(url, "/healthz")[0] == 200
        for _ in range(2):
            status, content = asked(url, "/readyz")
            assert status == 503
            assert "CROSSWIND_LAKE is s3://" in content
        assert asked(url, SERIES)[0] == 200  # of copies
        assert sent(url, segments[1]) == 503
        begun = [line for line in log.read_text().splitlines() if "until the object store answers" in line]
        assert len(begun) == 1
        assert "CROSSWIND_LAKE is s3://" in begun[0]
        faults.act = lambda _: False
        time.sleep(2.1)
        assert asked(url, "/readyz")[0] == 200
        assert [sent(url, segment) for segment in segments[:2]] == [200, 201]
    assert "Traceback" not in log.read_text()


def test_a_server_refuses_to_start_with_the_objects_of_another_catalog(
    address: LakeAddress, accounting: Path, tmp_path: Path
) -> None:
    environment = {"CROSSWIND_LAKE": setting_of(address)}
    Site(tmp_path / "first", environment).ingest(str(accounting))
    kept = {name: value for name, value in os.environ.items() if not name.startswith("CROSSWIND_")}
    command = [sys.executable, "-m", "crosswind.cli.main", "serve", "--port", "0"]
    second = kept | environment | {"CROSSWIND_HOME": str(tmp_path / "second")}
    done = subprocess.run(command, env=second, capture_output=True, text=True, check=False, timeout=60)
    assert done.returncode != 0
    assert "is another catalog's: expected a prefix that nobody uses" in done.stderr
