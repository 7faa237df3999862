"""`crosswind runs`: the stored runs, newest first, or what of their variability is luck in converging."""

import argparse
import json
from collections.abc import Hashable, Mapping, Sequence
from dataclasses import asdict

from crosswind.cli.text.output import say, say_json, table
from crosswind.dashboards.wording import NONE, seconds
from crosswind.data.catalog.runs import RunFilter
from crosswind.data.schema.errors import InvalidInputError
from crosswind.data.schema.run import Run, RunState
from crosswind.data.store.features import all_runs, summaries
from crosswind.data.store.progress_rate import ProgressRate, progress_rates
from crosswind.data.store.store import Store
from crosswind.settings import Settings

HEADINGS = ("run", "workload", "state", "ranks", "run time", "steps", "step p50", "CoV", "configuration")
RATE_HEADINGS = (
    *("workload", "system", "ranks", "runs", "time to train", "CoV", "progress", "CoV: luck"),
    *("time per unit", "CoV: system"),
)


def configure(parser: argparse.ArgumentParser) -> None:
    """Adds the verb's arguments."""
    parser.add_argument("--workload", help="only runs of this workload")
    parser.add_argument("--system", help="only runs on this system")
    parser.add_argument("--state", choices=[str(state) for state in RunState], help="only runs in this state")
    parser.add_argument("--limit", type=int, default=20, help="at most this many (default 20)")
    parser.add_argument("--rates", action="store_true", help="per cohort: time to train = progress x time per unit")


def execute(arguments: argparse.Namespace, settings: Settings) -> int:
    """Lists them."""
    if arguments.limit < 1:
        raise InvalidInputError(f"--limit {arguments.limit}: expected 1 or more")
    state = RunState(arguments.state) if arguments.state else None
    wanted = RunFilter(workload=arguments.workload, system=arguments.system, state=state)
    with Store.open(settings.home, database=settings.database) as store:
        if arguments.rates:
            _print_rates(progress_rates(all_runs(store, wanted))[: arguments.limit], as_json=arguments.json)
            return 0
        runs = all_runs(store, wanted, limit=arguments.limit)[::-1]
        frame = summaries(store, runs)
    if arguments.json:
        say_json(json.loads(frame.to_json(orient="records")))
    elif not runs:
        say("No runs are stored yet: crosswind run -- torchrun ... records one, crosswind demo records a dozen.")
    else:
        outcomes = frame.to_dict("records")
        say(table(HEADINGS, [_line(run, outcome) for run, outcome in zip(runs, outcomes, strict=True)]))
    return 0


def _print_rates(rates: Sequence[ProgressRate], *, as_json: bool) -> None:
    if as_json:
        say_json([asdict(rate) for rate in rates])
    elif rates:
        say(table(RATE_HEADINGS, [_rate_line(rate) for rate in rates]))
    else:
        say("No cohort has two runs with recorded progress: crosswind ingest of MLPerf logs brings such runs.")


def _rate_line(rate: ProgressRate) -> tuple[str, ...]:
    return (
        rate.workload,
        rate.system,
        str(rate.world_size or NONE),
        str(rate.runs),
        seconds(rate.seconds_p50),
        f"{rate.seconds_cov_ratio:.1%}",
        f"{rate.progress_p50:g} {rate.unit}",
        f"{rate.progress_cov_ratio:.1%}",
        seconds(rate.seconds_per_progress_p50),
        f"{rate.seconds_per_progress_cov_ratio:.1%}",
    )


def _line(run: Run, outcome: Mapping[Hashable, float]) -> tuple[str, ...]:
    has_steps = outcome["steps"] == outcome["steps"]  # NaN if the run recorded none
    return (
        run.run_id,
        run.workload,
        run.state,
        str(run.world_size or NONE),
        seconds(run.seconds),
        f"{outcome['steps']:.0f}" if has_steps else NONE,
        seconds(outcome["step_p50_seconds"]),
        f"{outcome['step_cov_ratio']:.1%}" if has_steps else NONE,
        " ".join(f"{name}={value}" for name, value in run.configuration.items()),
    )
