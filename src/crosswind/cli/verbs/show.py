"""`crosswind show`: one run, its outcome and its ranks."""

import argparse

from crosswind.cli.arguments import configure_server
from crosswind.cli.text.output import printable, say_answer
from crosswind.client.connection import connect
from crosswind.client.run_names import LATEST, run_named
from crosswind.dashboards.energy_wording import measured_words
from crosswind.dashboards.wording import count, seconds
from crosswind.data.schema.answers.runs import RunReport
from crosswind.data.schema.failure import TAG, failure_words, failures_in
from crosswind.data.schema.steps import NOT_SEEN, PHASES
from crosswind.settings import Settings

MOST_LATECOMERS = 3


def configure(parser: argparse.ArgumentParser) -> None:
    """Adds the verb's arguments."""
    parser.add_argument("run", nargs="?", default=LATEST, help="run id, the end of one, or `latest` (default)")
    configure_server(parser)


def execute(arguments: argparse.Namespace, settings: Settings) -> int:
    """Shows it."""
    with connect(arguments.server, settings=settings) as client:
        report = client.run_report(run_named(client, arguments.run).run_id)
    say_answer(report, _text, as_json=arguments.json)
    return 0


def _text(report: RunReport) -> str:
    run = report.run
    lines = [
        f"run {run.run_id}: {run.state}" + (f", exit code {run.exit_code}" if run.exit_code is not None else ""),
        f"workload {run.workload} on {run.system}, {run.world_size or '?'} ranks, took {seconds(run.seconds)}",
        *([f"energy {measured_words(report.energy)}"] if report.energy else []),
        "configuration " + (" ".join(f"{name}={value}" for name, value in run.configuration.items()) or "-"),
        *_steps(report),
    ]
    if failures := failures_in(run.tags):
        lines.append(f"failed: {failure_words(failures)}")
    lines += [
        f"rank {latecomer.rank} was last to arrive in {latecomer.share:.0%} of the steps, "
        f"by {seconds(latecomer.late_seconds)} in the median of them"
        for latecomer in report.latecomers[:MOST_LATECOMERS]
    ]
    lines += [f"rank {rank.rank} on {rank.node}, pid {rank.pid}" for rank in report.ranks]
    tags = {name: value for name, value in run.tags.items() if not name.startswith(TAG)}
    lines += [f"{name} {value}" for name, value in {**tags, **run.software, **run.facts.given}.items()]
    if run.command:
        lines.append("command " + " ".join(run.command))
    return "\n".join(map(printable, lines))


def _steps(report: RunReport) -> list[str]:
    outcome = report.outcome
    if not outcome.steps:
        return []
    variability = "" if outcome.step_cov_ratio is None else f", CoV {outcome.step_cov_ratio:.1%}"
    return [
        f"{count(outcome.steps, 'step')}: p50 {seconds(outcome.step_p50_seconds)}{variability}",
        *[f"  {phase:<10} {_a_step(getattr(outcome, f'{phase}_seconds'))}" for phase in PHASES],
    ]


def _a_step(value: float | None) -> str:
    return NOT_SEEN if value is None else f"{seconds(value)} a step"
