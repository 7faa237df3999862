"""Owners of runs, by the scheduler's accounts of their jobs where the runs' own records did not say."""

from crosswind.data.store.store import Store

LOOKED_UP = 2000  # newest runs without a user


def settle_owners(store: Store) -> int:
    """Note user and account of jobs on their runs whose user is not known; the number of jobs that were noted.

    Raises: MalformedError for a damaged lake.
    """
    with store.catalog.read() as session:
        unowned = session.runs.unowned(limit=LOOKED_UP)
    if not unowned:
        return 0
    by_id = store.jobs.all_named({job_id for _, job_id in unowned})
    jobs = [job for of_id in by_id.values() for job in of_id if job.user and (job.system, job.job_id) in unowned]
    if jobs:
        with store.catalog.write() as session:
            for job in jobs:
                session.runs.settle_owner(job.system, job.job_id, user=job.user or "", account=job.account)
    return len(jobs)
