"""Past checks, each compared with what was known before it."""

from collections.abc import Iterable
from dataclasses import dataclass, replace

import pandas as pd

from crosswind.data.schema.answers.checks import EarlierChecks
from crosswind.data.schema.checks import PREFLIGHT, QUANTITIES, Measured
from crosswind.data.store.seen import OTHERS
from crosswind.data.store.store import Store
from crosswind.models.preflight.history import VALUES_EACH, earlier_checks
from crosswind.models.preflight.verdict import Verdict, judged

CHECKS = 20  # the newest
_NEWEST = f"""
select check_id, any_value(job_id) as job_id, min(ts_ns) as at_ns from preflight where system = ?
and not starts_with(check_id, '{OTHERS}') group by check_id order by at_ns desc, check_id limit ?
"""  # noqa: S608 - our own texts
_VALUES = """
select check_id, node, measure, value, device, peer, method, hardware from preflight
where system = ? and check_id in (select unnest(?)) order by check_id, node, measure, device, peer
"""
_SYSTEMS = "select system, max(ts_ns) as at_ns from preflight where system is not null group by system order by 2 desc"


@dataclass(frozen=True)
class PastCheck:
    """A check as it was stored, with the verdict on it: failed measures are not stored, so none is judged."""

    check_id: str
    system: str
    at_ns: int
    job_id: str | None
    nodes: tuple[str, ...]
    verdict: Verdict


def checked_systems(store: Store) -> tuple[str, ...]:
    """The systems with stored checks, the one of the newest check first."""
    if PREFLIGHT.name not in store.lake.sets():
        return ()
    return tuple(map(str, store.lake.frame(_SYSTEMS)["system"]))


def past_checks(store: Store, system: str, *, checks: int = CHECKS) -> tuple[PastCheck, ...]:
    """The newest checks of a system, the newest first, each against the ten values of each place before it.

    Raises: MalformedError for a damaged file.
    """
    lake = store.lake
    if PREFLIGHT.name not in lake.sets():
        return ()
    newest = lake.frame(_NEWEST, [system, checks])
    values = lake.frame(_VALUES, [system, newest["check_id"].tolist()])
    of_check = {str(check_id): rows for check_id, rows in values.groupby("check_id")}
    history = earlier_checks(lake, system, newest=VALUES_EACH + checks)
    return tuple(
        _past((str(check_id), system, int(at_ns), _text(job_id)), of_check[str(check_id)], history)
        for check_id, job_id, at_ns in newest.itertuples(index=False, name=None)
    )


def _past(key: tuple[str, str, int, str | None], rows: pd.DataFrame, history: Iterable[EarlierChecks]) -> PastCheck:
    nodes = {str(node) for node in rows["node"]} | {str(peer) for peer in rows["peer"].dropna()}
    of_nodes = rows[rows["measure"].isin(list(QUANTITIES)) & (rows["value"] > 0)]
    measured = [
        Measured(
            str(node), str(measure), float(value), _text(device), _text(peer), None, _text(how) or "", _text(on) or ""
        )
        for _, node, measure, value, device, peer, how, on in of_nodes.itertuples(index=False, name=None)
    ]
    names = tuple(sorted(nodes))
    return PastCheck(*key, names, judged(names, measured, (), _before(history, key[2])))


def _before(history: Iterable[EarlierChecks], at_ns: int) -> list[EarlierChecks]:
    """Return the newest values of each place before a time."""
    earlier = []
    for series in history:
        newest = [pair for pair in zip(series.at_ns, series.values, strict=True) if pair[0] < at_ns][:VALUES_EACH]
        if newest:
            times, values = zip(*newest, strict=True)
            earlier.append(replace(series, at_ns=times, values=values))
    return earlier


def _text(value: object) -> str | None:
    return None if value is None or pd.isna(value) else str(value)  # type: ignore[call-overload]
