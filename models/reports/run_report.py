"""One run with everything that was recorded of it but its rows."""

import math
from collections.abc import Hashable, Mapping

from crosswind.data.schema.answers.runs import Latecomer, RunReport
from crosswind.data.schema.carbon import CarbonIntensity
from crosswind.data.store.arrivals import latecomers
from crosswind.data.store.features import listed, outcomes
from crosswind.data.store.store import Store
from crosswind.models.energy.measured import energy_of_run


def run_report(store: Store, run_id: str, intensity: CarbonIntensity | None) -> RunReport:
    """Return the report of a run. Raises: NotFoundError."""
    with store.catalog.read() as session:
        run, ranks = session.runs.get(run_id), tuple(session.ranks.of(run_id))
    [outcome] = outcomes(store, [run])
    late: list[dict[Hashable, float]] = latecomers(store, run_id).to_dict("records")
    return RunReport(
        run=listed(run),
        outcome=outcome,
        ranks=ranks,
        latecomers=tuple(map(_latecomer, late)),
        energy=energy_of_run(store, run, intensity),
    )


def _latecomer(row: Mapping[Hashable, float]) -> Latecomer:
    late_seconds = None if math.isnan(row["late_seconds"]) else float(row["late_seconds"])
    return Latecomer(int(row["rank"]), int(row["steps"]), float(row["share"]), late_seconds)
