"""The state of a job by its accounts, in SQL: one definition for all who ask for jobs, count them or add to them.

A scheduler reports a job again and again: whole or in part, out of order, and again when it restarts.
"""

from collections.abc import Iterable

WAITING = ("PENDING", "RESV_DEL_HOLD", "REQUEUE_FED", "REQUEUE_HOLD", "REQUEUED", "SPECIAL_EXIT")
KEYS = ("system", "job_id")
END = ("state", "exit_code", "signal", "ended_ns")  # of one account, as half of two ends is none
TEXTS = ("name", "user", "account", "partition", "state", "nodes", "fields")  # where an empty one says nothing
_JOB = "partition by system, job_id"
_PENDING = f"coalesce(started_ns is null and state in {WAITING}, false)"


def settled(source: str, columns: Iterable[str], *, where: str = "true") -> str:
    """In SQL: one row a job with these columns, from the accounts of `source` that `where` leaves of it.

    The job is what is recorded of its newest start, by the scheduler's clock. An account without a start is one of that
    start, unless it has an end before it. One that waits, recorded after all ends, is of a start to come, and so is
    what follows it. Of one start, how it went is what the account says that saw its end, the newest of those;
    everything else is the newest that is recorded, of that account first. A job that was cancelled while it ran stays
    cancelled, whatever its exit code. `where` must leave all accounts of a job or none.
    """
    wanted = [name for name in columns if name not in KEYS]
    needed = sorted({*wanted, "ts_ns", "started_ns", "ended_ns", "state"})
    facts = ", ".join([*KEYS, *(f'{_fact(name)} as "{name}"' for name in wanted)])
    accounts = ", ".join([*KEYS, *(_filled(name) for name in needed)])
    return _SETTLED.format(facts=facts, accounts=accounts, source=source, where=where)


def _filled(name: str) -> str:
    return f'nullif("{name}", \'\') as "{name}"' if name in TEXTS else f'"{name}"'


def _fact(name: str) -> str:
    if name == "started_ns":
        return "case when again_ns is null then newest_ns end"
    if name == "state":
        return f"case when {_CANCELLED} then 'CANCELLED' else first_value(state) over of_start end"
    of_one = "" if name in END else " ignore nulls"
    return f'first_value("{name}"{of_one}) over of_start'


_CANCELLABLE_NS = "case when started_ns is null then ended_ns when ended_ns is null then newest_ns end"  # at the latest
_CANCELLED = f"min({_CANCELLABLE_NS}) filter (state = 'CANCELLED') over of_start <= first_value(ended_ns) over of_start"
_ORDER = "order by ended_ns is null, state is null, ended_ns is not null and started_ns is null, ts_ns desc"
_SETTLED = f"""
    select {{facts}} from (
        select *, min(ts_ns) filter ({_PENDING} and ts_ns > end_recorded_ns) over ({_JOB}) as again_ns from (
            select *, coalesce(
                max(ts_ns) filter (ended_ns is not null and coalesce(started_ns = newest_ns, true)) over ({_JOB}),
                max(ts_ns) filter (started_ns is not distinct from newest_ns) over ({_JOB})
            ) as end_recorded_ns from (
                select {{accounts}}, max(started_ns) over ({_JOB}) as newest_ns from {{source}} where {{where}}
            )
        )
    )
    where case
        when again_ns is not null then started_ns is null and ts_ns >= again_ns
        when started_ns is null and newest_ns is not null then not {_PENDING} and coalesce(ended_ns >= newest_ns, true)
        else started_ns is not distinct from newest_ns
    end
    window of_start as (
        {_JOB} {_ORDER}
        rows between unbounded preceding and unbounded following
    )
    qualify row_number() over ({_JOB} {_ORDER}) = 1
"""  # noqa: S608 - our own texts
