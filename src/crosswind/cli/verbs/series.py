"""`crosswind series METRIC`: the course of a metric of nodes, a job or runs; without one, the stored metrics."""

import argparse
import re
import time
from collections.abc import Sequence

from crosswind.cli.arguments import configure_server
from crosswind.cli.quantities import whole
from crosswind.cli.text.output import say, say_json, table
from crosswind.cli.text.sparkline import sparkline
from crosswind.client.connection import connect
from crosswind.dashboards.wording import NONE, count, number, quantity, seconds, utc
from crosswind.data.schema.answers.series import MetricSeries, SeriesAnswer, StoredMetric
from crosswind.data.schema.moment import duration_seconds, moment_ns
from crosswind.data.schema.series_question import SERIES, SeriesQuestion, Statistic
from crosswind.settings import Settings

AGO = re.compile(r"^-([0-9].*|\.[0-9]+)$")  # -1h is a value, no option
POINTS = 60  # a terminal's worth
HEADINGS = ("series", "lowest", "mean", "highest", "last", "course")
METRIC_HEADINGS = ("metric", "kind", "unit", "by", "")


def configure(parser: argparse.ArgumentParser) -> None:
    """Adds the verb's arguments."""
    parser._negative_number_matcher = AGO
    parser.add_argument("metric", nargs="*", help="set.column, such as cpu.user_seconds_total; without one: lists them")
    parser.add_argument("--node", action="append", default=[], help="of this node; may be repeated (default: all)")
    parser.add_argument("--device", action="append", default=[], help="of this device; may be repeated (default: all)")
    parser.add_argument("--job", help="of this job: its nodes and runs, in its time")
    parser.add_argument("--system", help="where several systems have a job of this id")
    parser.add_argument("--run", action="append", default=[], help="of this run and its nodes; may be repeated")
    parser.add_argument("--from", dest="begin", metavar="TIME", help="-1h, -7d or 2026-11-01T08:00Z (default -1h)")
    parser.add_argument("--to", dest="end", metavar="TIME", help="the same, or now (default: now, or the run's end)")
    parser.add_argument("--step", metavar="DURATION", help="of a value: 30s, 5m, 1h (default: as fits the terminal)")
    parser.add_argument("--statistic", action="append", default=[], choices=[*Statistic], help="may be repeated")
    parser.add_argument("--by", action="append", metavar="KEY", help="node, device, rank, run, or none for all as one")
    parser.add_argument("--limit", type=whole, default=SERIES, help=f"at most so many series (default {SERIES})")
    configure_server(parser)


def execute(arguments: argparse.Namespace, settings: Settings) -> int:
    """Print the series, or the metrics."""
    with connect(arguments.server, settings=settings) as client:
        if not arguments.metric:
            metrics = client.fleet.metrics()
            say_json(metrics) if arguments.json else _print_metrics(metrics)
            return 0
        answer = client.fleet.series(_question(arguments, time.time_ns()))
    if arguments.json:
        say_json(answer)
    else:
        _print_series(answer)
    return 0


def _question(arguments: argparse.Namespace, now_ns: int) -> SeriesQuestion:
    by = None if arguments.by is None else tuple(key for key in arguments.by if key != "none")
    end = arguments.end or (None if arguments.job or arguments.run else "now")
    return SeriesQuestion(
        *(tuple(arguments.metric), tuple(arguments.node), arguments.job, arguments.system, tuple(arguments.run)),
        from_ns=None if arguments.begin is None else moment_ns(arguments.begin, now_ns, field="--from"),
        to_ns=None if end is None else moment_ns(end, now_ns, field="--to"),
        step_seconds=None if arguments.step is None else duration_seconds(arguments.step, field="--step"),
        statistics=tuple(map(Statistic, arguments.statistic)),
        by=by,
        points=POINTS,
        limit=arguments.limit,
        devices=tuple(arguments.device),
    )


def _print_metrics(metrics: Sequence[StoredMetric]) -> None:
    if metrics:
        lines = [(one.name, one.kind, one.unit or NONE, ", ".join(one.by), one.description) for one in metrics]
        say(table(METRIC_HEADINGS, lines))
    else:
        say("No samples yet: run crosswind agent, then crosswind ingest or crosswind sync.")


def _print_series(answer: SeriesAnswer) -> None:
    if not answer.series:
        span = f"from {utc(answer.from_ns)} to {utc(answer.to_ns)}"
        say(f"No values {span} (growth needs two samples): --from -7d looks further back.")
        return
    say(table(HEADINGS, [_line(one) for one in answer.series]))
    more = f"; {count(answer.left_out, 'further series').removesuffix('s')} with --limit" if answer.left_out else ""
    rolled = ", ".join(sorted({seconds(one.resolution_seconds) for one in answer.rolled}))
    more += f"; partly from roll-ups of {rolled}" if rolled else ""
    say(f"\n{utc(answer.from_ns)} to {utc(answer.to_ns)}, one value in {seconds(answer.step_seconds)}{more}")


def _line(one: MetricSeries) -> tuple[str, ...]:
    sampled = [value for value in one.values if value is not None]
    name = " ".join([*one.labels.values(), one.metric, one.statistic])
    if not sampled:
        return name, NONE, NONE, NONE, NONE, sparkline(one.values)
    shown = (min(sampled), sum(sampled) / len(sampled), max(sampled), sampled[-1])
    return name, *(_quantity(value, one.unit) for value in shown), sparkline(one.values)


def _quantity(value: float, unit: str) -> str:
    return number(value) if unit in ("1", "1/s") else quantity(value, unit)
