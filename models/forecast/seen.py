"""The weather as somebody may see it who may not see every run that was learned from."""

from dataclasses import replace

from crosswind.data.catalog.runs import RunFilter
from crosswind.data.schema.answers.weather import SystemWeather
from crosswind.data.schema.errors import InvalidInputError
from crosswind.data.schema.run import RunState
from crosswind.data.store.store import Store
from crosswind.models.association.outcomes import usual_system
from crosswind.models.forecast.weather_service import WeatherService


def weather_seen(
    store: Store, service: WeatherService, system: str | None, workload: str | None, *, hours: int
) -> SystemWeather:
    """Return the weather of the workloads whose runs the store shows. Raises: InvalidInputError, UnavailableError."""
    if store.rule.sees_all:
        return service.answer(system, workload, hours=hours)
    where = usual_system(store, workload) if system is None else system
    with store.catalog.read() as session:
        seen = session.runs.workloads(RunFilter(system=where, state=RunState.COMPLETED))
    if not seen or workload not in (None, *seen):
        names = ", ".join(sorted(seen)) or "none"
        raise InvalidInputError(
            f"workload {workload!r}: no run of it has completed on system {where!r}, known are {names}"
        )
    answer = service.answer(where, workload, hours=hours)
    return replace(answer, workloads=tuple(one for one in answer.workloads if one.workload in seen))
