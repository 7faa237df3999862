"""`crosswind weather`: how slow a system is now and in the next hours, and when its runs became slower for good."""

import argparse
from functools import partial

from crosswind.cli.arguments import configure_server
from crosswind.cli.progress import Progress
from crosswind.cli.text.output import printable, say_answer, table
from crosswind.client.connection import connect
from crosswind.dashboards.wording import count, moment, percent, times, utc
from crosswind.data.schema.answers.weather import HourForecast, LevelChange, SystemWeather, WorkloadWeather
from crosswind.data.schema.question import HOURS_MAX
from crosswind.settings import Settings

WORSE = 1.05  # times now's ratio, from which on a later hour is named


def configure(parser: argparse.ArgumentParser) -> None:
    """Adds the verb's arguments."""
    parser.add_argument("--workload", help="of this one alone, hour by hour (default: all of the last 28 days)")
    parser.add_argument("--system", help="of which system (default: this system)")
    parser.add_argument(
        "--hours", type=int, default=HOURS_MAX, help=f"how far to look ahead (default {HOURS_MAX}, the most)"
    )
    configure_server(parser)


def execute(arguments: argparse.Namespace, settings: Settings) -> int:
    """Print the system's weather."""
    with connect(arguments.server, settings=settings) as client, Progress("fitting the forecast"):
        answer = client.weather(arguments.system or settings.system, arguments.workload, hours=arguments.hours)
    say_answer(answer, partial(weather_text, hourly=arguments.workload is not None), as_json=arguments.json)
    return 0


def weather_text(answer: SystemWeather, *, hourly: bool) -> str:
    """Return what runs now, a line for each workload with its changes, its hours if wanted, and the basis."""
    going = [count(answer.running_runs, "run"), count(answer.running_jobs, "job")]
    lines = [f"{printable(answer.system)} at {utc(answer.now_ns)}: {' and '.join(going)} in progress"]
    for workload in answer.workloads:
        lines += [f"{printable(workload.workload)}: {_state(workload)}", *_changes(workload)]
    if not answer.workloads:
        lines.append(f"no workload completed a run in the last 28 days; the newest ended {utc(answer.newest_ended_ns)}")
    if hourly:
        lines += ["", *(_hours(forecast) for forecast in answer.workloads), ""]
    return "\n".join([*lines, *_basis(answer), *(f"warning: {warning}" for warning in answer.warnings)])


def _state(of: WorkloadWeather) -> str:
    """`now slower than usual, 1.12x the usual time [0.98 .. 1.31]; as usual from 22:00 UTC (from 9 of 12 runs)`."""
    hours = of.hours
    now = f"{times(hours[0].ratio)} the usual time {_band(hours[0])}"
    compared = f"from {of.compared_runs} of {count(of.runs, 'run')}"
    if of.standing == "unknown":
        return f"unknown; a guess is {now} ({compared})"
    words = "as usual" if of.standing == "usual" else f"{of.standing} than usual"
    return f"now {words}, {now}{_later(of)} ({compared})"


def _later(of: WorkloadWeather) -> str:
    now, *ahead = of.hours
    worst = max(ahead, key=lambda hour: hour.ratio)
    parts = []
    if worst.standing == "slower" and worst.ratio > now.ratio * WORSE:
        parts.append(f"; {times(worst.ratio)} at {_clock(worst.at_ns)}")
    if of.usual_from_ns is not None:
        parts.append(f"; as usual from {_clock(of.usual_from_ns)}")
    elif of.standing != "usual":
        parts.append(f"; not as usual within {count(len(ahead), 'hour')}")
    elif all(hour.standing == "usual" for hour in ahead):
        parts.append(f"; so for the next {count(len(ahead), 'hour')}")
    return "".join(parts)


def _changes(of: WorkloadWeather) -> list[str]:
    return [f"  {_change(change)}" for change in of.changes]


def _change(change: LevelChange) -> str:
    words = "slower" if change.ratio > 1 else "faster"
    compared = f"{count(change.runs_since, 'run')} against {change.runs_before}"
    return f"{words} since {utc(change.since_ns)}: {times(change.ratio)} the time of before ({compared})"


def _hours(of: WorkloadWeather) -> str:
    rows = [(_clock(hour.at_ns), times(hour.ratio), _band(hour)) for hour in of.hours]
    return table(("begun at", "ratio", "90 % band"), rows)


def _basis(answer: SystemWeather) -> list[str]:
    compared = f"{count(answer.compared_runs, 'run')} compared with earlier ones like them"
    if answer.chosen is None:
        return [f"from: {compared}"]
    rows = [
        (
            candidate.name + (" *" if candidate.name == answer.chosen else ""),
            _skill(candidate.skill),
            *(_skill(horizon.skill) for horizon in candidate.by_horizon),
            percent(candidate.coverage_90),
        )
        for candidate in answer.candidates
    ]
    ahead = [f"{horizon.hours:g} h ahead" for horizon in answer.candidates[0].by_horizon]
    heading = f"from: {compared}; backtest on the newer half, skill over the same band at every hour (* answers):"
    return [heading, table(("candidate", "skill", *ahead, "in its 90 % band"), rows)]


def _skill(value: float) -> str:
    return f"{value:+.1%}"


def _band(hour: HourForecast) -> str:
    return f"[{hour.low_ratio:.2f} .. {hour.high_ratio:.2f}]"


def _clock(at_ns: int) -> str:
    return f"{moment(at_ns):%H:%M} UTC"
