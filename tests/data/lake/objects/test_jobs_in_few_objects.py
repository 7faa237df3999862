from collections.abc import Callable

import pytest

from crosswind.data.lake.compaction import compact
from crosswind.data.schema.job import Job
from crosswind.data.store import jobs
from crosswind.data.store.jobs import JobFilter, job_table
from crosswind.data.store.store import Store

DAY_NS, DAYS = 86_400_000_000_000, 6
FIRST_NS = 20_000 * DAY_NS


def day_of(day: int) -> list[Job]:
    began = FIRST_NS + day * DAY_NS
    return [Job("lab", f"{day}{place}", started_ns=began + place, state="COMPLETED") for place in range(4)]


@pytest.mark.parametrize("database", ["sqlite", "postgresql"], indirect=True)
def test_a_list_of_jobs_copies_the_objects_that_matter(
    store: Store, another: Callable[[], Store], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(jobs, "ROWS_LOOKED_AT", 1)
    for day in range(DAYS):
        store.lake.append(f"day-{day}", job_table(day_of(day), reported_ns=FIRST_NS + day * DAY_NS))
    compact(store.lake, settle_seconds=-1, now_ns=FIRST_NS + (DAYS + 3) * DAY_NS)
    asking = another()
    assert asking.jobs.find(limit=1) == day_of(DAYS - 1)[-1:]
    assert dates(asking) == [f"date=2024-10-{3 + DAYS:02}"]
    assert asking.jobs.get("lab", "20") == day_of(2)[0]
    assert asking.jobs.find(JobFilter(until_ns=FIRST_NS + 2 * DAY_NS + 1), limit=1) == day_of(2)[:1]
    assert dates(asking) == ["date=2024-10-06", f"date=2024-10-{3 + DAYS:02}"]


def dates(store: Store) -> list[str]:
    """The days of which rows were copied."""
    return sorted({path.parents[1].name for path in store.home.glob("lake-copies/set=job/date=*/*/part-*.parquet")})
