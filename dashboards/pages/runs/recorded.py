"""Everything that was recorded of one run while it ran."""

import time
from dataclasses import dataclass

from crosswind.client.local import Local
from crosswind.dashboards.figures.run.strips import NodeStrips
from crosswind.dashboards.pages.runs.node_strips import axis_of, node_strips
from crosswind.dashboards.pages.runs.recorded_steps import RecordedSteps, recorded_steps
from crosswind.dashboards.queries import ENDED_AGO_NS, KEEP_SECONDS, NodeSource, node_samples
from crosswind.data.schema.answers.energy import EnergyForecast, MeasuredEnergy
from crosswind.data.store.store import Store
from crosswind.models.energy.estimated import energy_or_estimate


@dataclass(frozen=True)
class Recorded:
    """A run's steps, strips of its nodes over all of them, the metric sets that were sampled, and its energy.

    `keep_seconds`: how long this is kept, whatever arrives.
    """

    steps: RecordedSteps
    strips: NodeStrips | None
    node_sources: tuple[NodeSource, ...]
    energy: MeasuredEnergy | EnergyForecast | None
    keep_seconds: float


def recorded(store: Store, run_id: str, node: str | None) -> Recorded:
    """Return what was recorded of a run, `node` in blue in the strips. Raises: NotFoundError, MalformedError."""
    with store.catalog.read() as session:
        run = session.runs.get(run_id)
    steps = recorded_steps(store, run)
    return Recorded(
        steps,
        node_strips(Local(store), run, axis_of(run, steps.compared), node),
        node_samples(store, run),
        energy_or_estimate(store, run, None),
        KEEP_SECONDS if run.ended_ns is not None and run.ended_ns < time.time_ns() - ENDED_AGO_NS else 0.0,
    )
