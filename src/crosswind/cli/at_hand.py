"""The store at hand, asked in the words in which a server is asked, and answering in its words."""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import fields
from typing import Any

from crosswind.cli.output import plain
from crosswind.data.schema.question import Question
from crosswind.data.store.store import Store
from crosswind.models.advice.advise import Scales, scaling_advice, walltime_advice
from crosswind.models.advice.scaling import Price
from crosswind.models.advice.shares_of_run import shares_of_run
from crosswind.models.forecast.running import remaining
from crosswind.models.next_run.cases import Outcome
from crosswind.models.next_run.predictor import RunPredictor
from crosswind.models.next_run.registered import run_predictor
from crosswind.settings import Settings

Asked = Mapping[str, Any]
SCALES, PRICES = ([field.name for field in fields(kind)] for kind in (Scales, Price))


def predictions(settings: Settings, asked: Asked) -> Asked:
    """As POST /v1/predictions."""
    with _predictor(settings) as predictor:
        outcome = Outcome(asked["outcome"]) if asked.get("outcome") else None
        return _told(predictor.answer(_question(asked), outcome, limit_seconds=asked.get("limit_seconds")))


def walltime(settings: Settings, asked: Asked) -> Asked:
    """As POST /v1/walltime-advice."""
    with _predictor(settings) as predictor:
        startup = asked.get("startup_seconds")
        return _told(walltime_advice(predictor, _question(asked), asked["confidence"], startup_seconds=startup))


def scaling(settings: Settings, asked: Asked) -> Asked:
    """As POST /v1/scaling-advice."""
    scales = Scales(**{name: asked[name] for name in SCALES if name in asked})
    price = Price(**{name: asked[name] for name in PRICES if name in asked})
    with _predictor(settings) as predictor:
        return _told(scaling_advice(predictor, _question(asked), scales, price))


def remaining_of_run(settings: Settings, asked: Asked) -> Asked:
    """As GET /v1/runs/{run_id}/remaining."""
    with Store.open(settings.home, database=settings.database) as store:
        return _told(remaining(store, asked["run_id"], total_steps=asked["total_steps"]))


def batch_shares_of_run(settings: Settings, asked: Asked) -> Asked:
    """As GET /v1/runs/{run_id}/batch-shares."""
    with Store.open(settings.home, database=settings.database) as store:
        return _told(shares_of_run(store, asked["run_id"], asked["batch"], now_batch=asked["now_batch"]))


@contextmanager
def _predictor(settings: Settings) -> Iterator[RunPredictor]:
    with Store.open(settings.home, database=settings.database) as store:
        yield run_predictor(store, intensity=settings.intensity)


def _question(asked: Asked) -> Question:
    names = ("workload", "system", "configuration", "world_size", "node_count")
    return Question(**{name: asked[name] for name in names if name in asked})


def _told(record: object) -> Asked:
    answer: Asked = plain(record)
    return answer
