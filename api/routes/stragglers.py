"""Stragglers among peers over many runs and in one run, and changes in the pace of whole workloads."""

from typing import Annotated

from fastapi import APIRouter, Depends, Query
from pydantic import BaseModel, Field, computed_field

from crosswind.api.stored import AnswersOf, StoreOf
from crosswind.api.wire import Id, Name, View, refuse_unknown_query, rfc3339
from crosswind.data.store.features import EVERY_RUN
from crosswind.models.stragglers.fleet import RUNS, fleet_ranking
from crosswind.models.stragglers.live import stragglers_of_run
from crosswind.models.stragglers.ranking import SLOWER, SURE, Basis, Kind
from crosswind.models.stragglers.regressions import RUNS as REGRESSION_RUNS
from crosswind.models.stragglers.regressions import regressions

router = APIRouter(prefix="/v1", tags=["stragglers"], dependencies=[Depends(refuse_unknown_query)])
LIMIT = 50


class StragglersQuery(BaseModel):
    """Of which system and workload (null: of all), from how many of the newest runs, and how many rows to return."""

    system: Name | None = None
    workload: Name | None = None
    runs: Annotated[int, Field(ge=1, le=EVERY_RUN)] = RUNS
    limit: Annotated[int, Field(ge=1, le=10_000)] = LIMIT


class RankedView(View):
    """One thing's time over its peers' median, shrunken by how little is known of it, with its 90 % interval."""

    kind: Kind
    name: str
    system: str
    ratio: float
    low_ratio: float
    high_ratio: float
    chance_slower: Annotated[float, Field(description=f"that it is slower by more than {SLOWER:.0%}")]
    named: Annotated[bool, Field(description=f"that chance is {SURE:.0%} at least, and runs suffice")]
    runs: Annotated[int, Field(description="of its present level")]
    since_ns: Annotated[int | None, Field(description="when its present level began")]
    since: Annotated[str, Field(description="with what: first run, boot, change")]
    was_ratio: Annotated[float | None, Field(description="the level before")]
    basis: Basis

    @computed_field  # type: ignore[prop-decorator]
    @property
    def since_at(self) -> str | None:
        """As text."""
        return rfc3339(self.since_ns)


class StragglersView(View):
    """Comparison of peers, the surest stragglers first; `compared` counts it, of which `ranked` may be a part."""

    runs: int
    compared_runs: Annotated[int, Field(description="with ranks on several nodes that recorded their waiting")]
    timed_runs: Annotated[int, Field(description="that could only be compared by their time")]
    noise_ratio: Annotated[float | None, Field(description="by how much a node differs from run to run")]
    compared: int
    ranked: tuple[RankedView, ...]
    warnings: tuple[str, ...]


class EpisodeView(View):
    """A rank that the others waited for, or the fabric (`rank` null), from its first step on; null ends go on."""

    rank: int | None
    phase: str
    first_step: int
    last_step: int | None
    began_ns: int
    noticed_after_seconds: float
    ended_ns: int | None
    lag_seconds: Annotated[float, Field(description="mean of a step")]
    lag_ratio: Annotated[float, Field(description="over the usual step")]

    @computed_field  # type: ignore[prop-decorator]
    @property
    def began_at(self) -> str | None:
        """As text."""
        return rfc3339(self.began_ns)


class SlowdownView(View):
    """Measured / replayed with equal ranks: of the whole, and with one rank or pipeline stage alone as measured.

    `without` is by what mending each rank alone would have made it faster.
    """

    whole: float
    alone: tuple[float, ...]
    without: tuple[float, ...]
    of_group: tuple[float, ...]


class RunStragglersView(View):
    """A run's stragglers, step by step as they would have been told; `steps` of several ranks were judged."""

    run_id: str
    state: str
    ranks: int
    steps: int
    newest_step: int | None
    newest_ns: int | None
    episodes: tuple[EpisodeView, ...]
    slowdown: SlowdownView | None
    silent_ranks: tuple[int, ...]
    warnings: tuple[str, ...]


class RegressionsQuery(BaseModel):
    """Of which system and workload (null: of all), from how many of the newest completed runs."""

    system: Name | None = None
    workload: Name | None = None
    runs: Annotated[int, Field(ge=1, le=EVERY_RUN)] = REGRESSION_RUNS


class SuspectView(View):
    """A fact of the runs that changed at the same time."""

    fact: str
    before: str
    since: str
    exactness: Annotated[float, Field(description="agreement x chance that changes at random would be further off")]
    agreement: Annotated[float, Field(description="share of runs on the side where most others of their value are")]
    runs_off: int
    switches: Annotated[int, Field(description="how often the fact changed from run to run")]


class RegressionView(View):
    """From then on runs took `ratio` times as long as before, for good; no suspects: nothing changed with it."""

    system: str
    workload: str
    since_ns: int
    ratio: float
    runs_before: int
    runs_since: int
    suspects: tuple[SuspectView, ...]

    @computed_field  # type: ignore[prop-decorator]
    @property
    def since_at(self) -> str | None:
        """As text."""
        return rfc3339(self.since_ns)


class RegressionsView(View):
    """Lasting changes, the newest first; of the workloads `too_few` runs are known."""

    runs: int
    workloads: int
    changes: tuple[RegressionView, ...]
    too_few: tuple[str, ...]
    warnings: tuple[str, ...]


@router.get("/stragglers")
def get_stragglers(asked: Annotated[StragglersQuery, Query()], store: StoreOf, answers: AnswersOf) -> StragglersView:
    """Rank places, devices and nodes slower than their peers over all runs; stores nothing."""
    ranking = answers(store, fleet_ranking, asked.system, asked.workload, runs=asked.runs)
    fields = {**vars(ranking), "compared": len(ranking.ranked), "ranked": ranking.ranked[: asked.limit]}
    return StragglersView.model_validate(fields)


@router.get("/runs/{run_id}/stragglers")
def get_run_stragglers(run_id: Id, store: StoreOf) -> RunStragglersView:
    """Return who the ranks of one run waited for, when and in which phase, from its steps so far."""
    return RunStragglersView.model_validate(stragglers_of_run(store, run_id))


@router.get("/regressions")
def get_regressions(asked: Annotated[RegressionsQuery, Query()], store: StoreOf, answers: AnswersOf) -> RegressionsView:
    """Return when workloads became slower or faster for good, and what changed just then; stores nothing."""
    changes = answers(store, regressions, asked.system, asked.workload, runs=asked.runs)
    return RegressionsView.model_validate(changes)
