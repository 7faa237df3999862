"""Boosting on a Dask cluster, a block of trees after the other, each again where a worker was lost."""

import logging
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import dask.array
import xgboost as xgb
import xgboost.dask
from distributed import Client, Future
from distributed.client import FutureCancelledError, FuturesCancelledError
from xgboost.collective import Config

from crosswind.data.schema.errors import UnavailableError
from crosswind.models.training.cluster.versions import submit

ROUNDS, BLOCK = 100, 20  # trees in all, and after which those so far are safe
ATTEMPTS = 5  # of a block
LOST_SECONDS, LOOK_SECONDS = 20.0, 0.2  # for XGBoost to notice by itself that a worker is gone
CONNECT_SECONDS = 120
PARAMETERS = {
    "objective": "reg:squarederror",  # its sums are the same however rows are distributed; those of quantiles are not
    "base_score": 0.0,
    "tree_method": "hist",
    "max_bin": 256,
    "max_depth": 8,
    "learning_rate": 0.1,
    "min_child_weight": 5,
    "nthread": 1,
    "seed": 0,
}

_log = logging.getLogger("crosswind.training")


class _LostError(Exception):
    """A worker went away while it learned."""


LOST = (
    _LostError,
    xgb.core.XGBoostError,
    FutureCancelledError,
    FuturesCancelledError,
    OSError,
    RuntimeError,
    ValueError,
)


@dataclass(frozen=True)
class Rows:
    """Parts of the rows to learn from, each a future of (X, y) of so many rows, with as many columns each."""

    client: Client
    parts: Sequence[tuple[Future, int]]
    n_columns: int


def boosted(rows: Rows, report: Callable[[int], None], rounds: int = ROUNDS) -> xgb.Booster:
    """Return trees over the rows; `report` gets their number. Raises: UnavailableError without lasting workers."""
    booster = None
    for begin in range(0, rounds, BLOCK):
        booster = _block(rows, booster, min(BLOCK, rounds - begin))
        report(min(begin + BLOCK, rounds))
    return booster


def _block(rows: Rows, before: xgb.Booster | None, rounds: int) -> xgb.Booster:
    for _ in range(ATTEMPTS):
        rows.client.wait_for_workers(1, timeout=CONNECT_SECONDS)
        try:
            return _watched(rows.client, lambda: _trained(rows, before, rounds))
        except LOST as error:
            _log.warning("trees are learned again from the last %d on: %s", BLOCK, f"{error!s:.200}")
    raise UnavailableError(f"the workers did not learn {rounds} trees in {ATTEMPTS} attempts: see the log")


def _trained(rows: Rows, before: xgb.Booster | None, rounds: int) -> xgb.Booster:
    X, y = (dask.array.concatenate(list(_blocks(rows, side))) for side in (0, 1))
    made = xgboost.dask.train(
        *(rows.client, PARAMETERS),
        xgboost.dask.DaskQuantileDMatrix(rows.client, X, y, max_bin=PARAMETERS["max_bin"]),
        num_boost_round=rounds,
        xgb_model=before,
        coll_cfg=Config(retry=1, timeout=CONNECT_SECONDS, tracker_timeout=CONNECT_SECONDS),
    )
    return made["booster"]


def _blocks(rows: Rows, side: int) -> Iterator[Any]:
    for future, count in rows.parts:
        shape = (count, rows.n_columns) if side == 0 else (count,)
        yield dask.array.from_delayed(submit(rows.client, _side, future, side), shape=shape, dtype="float32")


def _side(pair: tuple[Any, Any], side: int) -> Any:
    return pair[side]


def _watched(client: Client, work: Callable[[], xgb.Booster]) -> xgb.Booster:
    """Return what the work returns; a worker that went away ends it, as its part of the work waits for it for ever."""
    began, outcome = set(client.scheduler_info(n_workers=-1)["workers"]), []

    def run() -> None:
        try:
            outcome.append(work())
        except BaseException as error:  # noqa: BLE001 - raised below, by the thread that waits
            outcome.append(error)

    thread = threading.Thread(target=run, name="boosting", daemon=True)
    thread.start()
    lost_since = None
    while not outcome:
        thread.join(LOOK_SECONDS)
        if began <= set(client.scheduler_info(n_workers=-1)["workers"]):
            continue
        lost_since = lost_since or time.monotonic()
        if time.monotonic() - lost_since > LOST_SECONDS:
            raise _LostError("a worker is gone")
    if isinstance(outcome[0], BaseException):
        raise outcome[0]
    return outcome[0]
