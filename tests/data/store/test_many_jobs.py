"""Jobs in many parts: each question opens those that matter, and none is answered differently for it."""

import random
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from crosswind.data.lake import job_parts
from crosswind.data.lake.compaction import compact
from crosswind.data.schema.job import Job
from crosswind.data.schema.part import Part
from crosswind.data.store import jobs
from crosswind.data.store.jobs import ANY_JOB, JobFilter, job_table
from crosswind.data.store.store import Store

DAY_NS = 86_400_000_000_000
FIRST_NS = 20_000 * DAY_NS
DAYS = 12


@pytest.fixture
def store(tmp_path: Path) -> Iterator[Store]:
    with Store.open(tmp_path / "store") as opened:
        yield opened


def report(store: Store, day: int, *accounts: Job) -> None:
    """Store accounts as reported on a day."""
    with store.catalog.write() as session:
        table = session.people.hidden(job_table(accounts, reported_ns=FIRST_NS + day * DAY_NS))
    store.lake.append(f"day-{day}", table)


def ran(number: int, day: int, user: str = "ada") -> Job:
    """A job that ran on a day."""
    began = FIRST_NS + day * DAY_NS - number
    return Job("lab", str(number), f"job {number}", user, state="COMPLETED", started_ns=began, ended_ns=began + 1)


def compacted(store: Store) -> list[Path]:
    """Compact the lake; return its days' files, oldest first."""
    compact(store.lake, settle_seconds=-1, now_ns=FIRST_NS + (DAYS + 3) * DAY_NS)
    return sorted((store.home / "lake" / "set=job").glob("date=*/part-c*.parquet"))


def test_days_that_cannot_matter_are_not_opened(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(jobs, "ROWS_LOOKED_AT", 2)
    monkeypatch.setattr(jobs, "FEW", 1)
    opened = 4  # of a list of three, as four accounts are looked at for each job
    by_day = [[ran(10 * day + place, day, "rare" if day == 5 else "ada") for place in range(3)] for day in range(DAYS)]
    for day, accounts in enumerate(by_day):
        report(store, day, *accounts)
    files = compacted(store)
    for day in {*range(DAYS - opened)} - {5}:
        files[day].write_bytes(b"garbled")
    newest, fifth = by_day[-1], by_day[5]
    assert store.jobs.find(limit=3) == newest
    assert store.jobs.find(JobFilter(user="ada", state="COMPLETED"), limit=2) == newest[:2]
    assert store.jobs.find(JobFilter(user="rare"), limit=50) == fifth
    assert store.jobs.find(JobFilter(user="nobody"), limit=50) == []
    day = JobFilter(since_ns=FIRST_NS + 4 * DAY_NS + 1, until_ns=FIRST_NS + 5 * DAY_NS)
    assert store.jobs.find(day, limit=50) == fifth
    assert store.jobs.get("lab", "51") == fifth[1]
    assert store.jobs.find(JobFilter(job_id="51"), limit=5) == [fifth[1]]
    with pytest.raises(jobs.MalformedError, match=r"date=2024-10-\d\d/part-c"):
        store.jobs.find(limit=3 * opened + 1)


@pytest.mark.parametrize(
    ("seed", "few"),
    [(0, 0), (1, 100), *(pytest.param(seed, 2, marks=pytest.mark.thorough) for seed in range(2, 6))],
)
def test_lists_are_those_of_all_accounts(store: Store, seed: int, few: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(jobs, "ROWS_LOOKED_AT", 1)
    monkeypatch.setattr(jobs, "FEW", few)
    monkeypatch.setattr(job_parts, "RANGES_MAX", 2)
    monkeypatch.setattr(job_parts, "VALUES_MAX", seed)
    dice = random.Random(seed)
    for day in range(6):
        report(store, day, *[account(dice, day) for _ in range(6)])
        if day == 3:
            assert compacted(store)
    every = list(store.jobs.all())[::-1]
    filters = [
        ANY_JOB,
        JobFilter(user="x"),
        *(JobFilter(state=state) for state in ("RUNNING", "CANCELLED", "PENDING")),
        JobFilter(name="n1", user="x"),
        JobFilter(job_id="7", system="a"),
        JobFilter(since_ns=FIRST_NS + DAY_NS, until_ns=FIRST_NS + 4 * DAY_NS),
        JobFilter(account="q", until_ns=FIRST_NS + 3 * DAY_NS),
    ]
    for wanted in filters:
        expected = [job for job in every if meets(job, wanted)]
        assert paged(store, wanted) == expected, wanted
        assert store.jobs.part(wanted, Part(4)) == expected[::-1][:4], wanted
    assert [store.jobs.get(job.system, job.job_id) for job in every] == every


def account(dice: random.Random, day: int) -> Job:
    """One of few jobs as it may be reported on a day: in part, out of order, again, after a requeue."""
    started = dice.choice([None, None, FIRST_NS + dice.randrange(day + 1) * DAY_NS])
    return Job(
        dice.choice("ab"),
        dice.choice(["5", "6", "7", "7_1", "900", "901", "ƒ2x", "x"]),
        dice.choice(["", "n1", "n2"]),
        dice.choice([None, "x", "y"]),
        account=dice.choice([None, "q"]),
        state=dice.choice(["", "PENDING", "RUNNING", "CANCELLED", "FAILED"]),
        started_ns=started,
        ended_ns=dice.choice([None, (started or FIRST_NS) + day]),
    )


def meets(job: Job, wanted: JobFilter) -> bool:
    """Return whether a job meets the conditions."""
    began = job.started_ns or 0
    is_of_time = (wanted.since_ns or 0) <= began < (wanted.until_ns or 2**63)
    facts = {name: value for name in jobs.EQUAL if (value := getattr(wanted, name)) is not None}
    return is_of_time and all(getattr(job, name) == value for name, value in facts.items())


def paged(store: Store, wanted: JobFilter) -> list[Job]:
    """Return the jobs that meet the conditions, by pages of three."""
    listed: list[Job] = []
    after = None
    while page := store.jobs.part(wanted, Part(3, descending=True, after=after)):
        listed += page
        after = (page[-1].started_ns or 0, page[-1].system, page[-1].job_id)
    return listed


def test_a_file_that_an_earlier_version_compacted_is_read_as_before(store: Store) -> None:
    first, later = ran(1, 0), ran(2, 1)
    report(store, 0, first, replace(first, job_id="3"))
    report(store, 1, later)
    for file in compacted(store):
        manifest = job_parts.manifest_of(file)
        manifest.write_text(manifest.read_text().replace('"jobs":', '"other":'))
    job_parts._noted.cache_clear()
    assert store.jobs.find(limit=1) == [later]
    assert store.jobs.get("lab", "1") == first
