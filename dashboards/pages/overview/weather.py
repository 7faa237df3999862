"""The workloads that are off their usual pace now."""

from collections.abc import Sequence

from crosswind.client.local import Local
from crosswind.dashboards.pages.overview.asked import DAY_HOURS, HOUR_NS, Asked
from crosswind.dashboards.pages.overview.block import ROWS, Block, Column, Kind, Link, Row, address_of
from crosswind.dashboards.wording import count, times
from crosswind.data.catalog.runs import RunFilter
from crosswind.data.schema.answers.weather import Pace, SystemWeather
from crosswind.data.schema.errors import ProjectError, UnavailableError
from crosswind.data.store.store import Store
from crosswind.models.forecast.seen import weather_seen
from crosswind.models.forecast.weather_service import WeatherService

SYSTEMS = 5  # whose weather is shown: those of the newest runs
NEWEST_RUNS = 500


def weather(asked: Asked) -> Block:
    """Return the workloads that are not at their usual pace, the slowest first."""
    client, system = asked.client, asked.wanted.system
    systems = (system,) if system else _systems(client)
    hour = asked.now_ns // HOUR_NS  # an answer holds for this hour
    answers = client.compute(client.store, weather_of, client.fitted.forecaster, systems, asked.wanted.workload, hour)
    if not answers:
        return Block(
            "weather", "No run has completed yet, of which weather could be learned.", command="crosswind demo"
        )
    lately = [(one.system, workload) for one in answers for workload in one.workloads]
    off = [(where, one) for where, one in lately if one.standing in (Pace.SLOWER, Pace.FASTER)]
    off.sort(key=lambda pair: -pair[1].hours[0].ratio)
    rows = tuple(
        Row(
            f"{one.workload} on {where}",
            address_of("regressions", {"system": where, "workload": one.workload}),
            (
                one.standing,
                one.hours[0].ratio,
                one.hours[0].low_ratio,
                one.hours[0].high_ratio,
                one.usual_from_ns or "unknown",
            ),
        )
        for where, one in off[:ROWS]
    )
    return Block(
        "weather",
        _weather_finding(rows, len(off), len(lately), len(answers)),
        (
            *(Column("Workload"), Column("Pace"), Column("Of its usual time", Kind.TIMES)),
            *(
                Column("90 % from", Kind.TIMES),
                Column("to", Kind.TIMES),
                Column("Usual again", Kind.MOMENT),
            ),
        ),
        rows,
        tuple(
            Link(f"Levels of the workloads on {one.system}", address_of("regressions", {"system": one.system}))
            for one in answers
        ),
    )


def weather_of(
    store: Store, forecaster: WeatherService, systems: Sequence[str], workload: str | None, _hour: int
) -> tuple[SystemWeather, ...]:
    """Return the weather of those systems that have completed runs."""
    answers = []
    for system in systems:
        try:
            answers.append(weather_seen(store, forecaster, system, workload, hours=DAY_HOURS))
        except UnavailableError:
            raise
        except ProjectError:  # no run of it has completed
            continue
    return tuple(answers)


def _systems(client: Local) -> tuple[str, ...]:
    with client.store.catalog.read() as session:
        newest = session.runs.outlines(RunFilter(), limit=NEWEST_RUNS)
    return tuple(dict.fromkeys(run.system for run in reversed(newest)))[:SYSTEMS]


def _weather_finding(rows: Sequence[Row], off: int, lately: int, systems: int) -> str:
    where = count(systems, "system")
    if not lately:
        return f"No workload ran in the last 28 days on {where}."
    if not rows:
        return f"Each of {count(lately, 'workload')} on {where} is at its usual pace, as far as runs suffice."
    name, (standing, ratio, *_) = rows[0].name, rows[0].values
    others = f"; {count(off - 1, 'other workload')} off the usual pace" if off > 1 else ""
    return f"{name} is {standing} now: {times(float(ratio or 0))} its usual time{others}."
