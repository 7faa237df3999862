"""Counters and neighbours of the store at hand in the words of the API, whose modules take their time to import."""

from collections.abc import Mapping
from typing import Any

from crosswind.api.routes.counters import CounterRankingView
from crosswind.api.routes.interference import InterferenceView
from crosswind.data.store.store import Store
from crosswind.models.counters.counters import counters as rank_counters
from crosswind.models.interference.interference import interference as rank_neighbours
from crosswind.settings import Settings

Told = Mapping[str, Any]


def counters(settings: Settings, workload: str | None, system: str | None) -> Told:
    """As GET /v1/counters."""
    with Store.open(settings.home, database=settings.database) as store:
        return CounterRankingView.model_validate(rank_counters(store, workload, system)).model_dump(mode="json")


def interference(
    settings: Settings, workload: str | None, system: str | None, *, groups: Mapping[str, str] | None = None
) -> Told:
    """As GET /v1/interference; `groups` has the switch of each node, where that is known."""
    with Store.open(settings.home, database=settings.database) as store:
        ranking = rank_neighbours(store, workload, system, groups=groups)
        return InterferenceView.model_validate(ranking).model_dump(mode="json")
