"""Stragglers and regressions of the store at hand in the words of the API, whose modules take time to import."""

import time
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from crosswind.api.routes.stragglers import RegressionsView, RunStragglersView, StragglersView
from crosswind.data.schema.topology import switches_of
from crosswind.data.store.store import Store
from crosswind.models.stragglers.fleet import fleet_ranking
from crosswind.models.stragglers.live import RunWatch
from crosswind.models.stragglers.regressions import regressions
from crosswind.settings import Settings

Told = Mapping[str, Any]


def ranking(settings: Settings, asked: Told, topology: str | None) -> Told:
    """As GET /v1/stragglers; with switches where a topology.conf tells them."""
    switches = switches_of(Path(topology)) if topology else None
    with Store.open(settings.home, database=settings.database) as store:
        stragglers = fleet_ranking(store, asked["system"], asked["workload"], runs=asked["runs"], switches=switches)
    fields = {**vars(stragglers), "compared": len(stragglers.ranked), "ranked": stragglers.ranked[: asked["limit"]]}
    return StragglersView.model_validate(fields).model_dump(mode="json")


def changes(settings: Settings, asked: Told) -> Told:
    """As GET /v1/regressions."""
    with Store.open(settings.home, database=settings.database) as store:
        report = regressions(store, asked["system"], asked["workload"], runs=asked["runs"])
    return RegressionsView.model_validate(report).model_dump(mode="json")


def watched(settings: Settings, run_id: str, every_seconds: float | None) -> Iterator[Told]:
    """As GET /v1/runs/{run_id}/stragglers, once, or as often as asked while the run goes on."""
    with Store.open(settings.home, database=settings.database) as store:
        watch = RunWatch.of(store, run_id)
        while True:
            view = RunStragglersView.model_validate(watch.look()).model_dump(mode="json")
            yield view
            if every_seconds is None or view["state"] != "running":
                return
            time.sleep(every_seconds)
