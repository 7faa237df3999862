"""`crosswind job ID`: one job on one page."""

import argparse

from crosswind.cli.arguments import configure_server
from crosswind.cli.progress import Progress
from crosswind.cli.text.output import printable, say_answer, table
from crosswind.client.connection import connect
from crosswind.dashboards.energy_wording import measured_words
from crosswind.dashboards.wording import NONE, count, percent, quantity, seconds, utc
from crosswind.data.schema.answers.jobs import JobReport, JobRun, ListedJob
from crosswind.data.schema.words import words
from crosswind.settings import Settings

HEADINGS = ("run", "workload", "state", "run time", "step p50", "verdict", "cause")
NODES = 8  # that are named
LABEL = 12  # letters


def configure(parser: argparse.ArgumentParser) -> None:
    """Adds the verb's arguments."""
    parser.add_argument("job_id", metavar="JOB", help="the job's id, as the scheduler writes it: 4711 or 4711_3")
    parser.add_argument("--system", help="where several systems have a job of this id")
    configure_server(parser)


def execute(arguments: argparse.Namespace, settings: Settings) -> int:
    """Print it."""
    with connect(arguments.server, settings=settings) as client, Progress("reading the job, explaining its runs"):
        report = client.job(arguments.job_id, arguments.system)
    say_answer(report, _text, as_json=arguments.json)
    return 0


def _text(report: JobReport) -> str:
    job = report.job
    lines = [
        f"job {job.job_id} on {job.system}: {job.name or 'without a name'}, {_state(job)}",
        _labelled("of", ", ".join(part for part in _whose(job) if part)),
        _labelled("time", _time(report)),
        _labelled("started", f"{utc(job.started_ns)}, ended {utc(job.ended_ns)}"),
        _labelled("nodes", _nodes(job)),
        _labelled("efficiency", _efficiency(report)),
        _labelled("energy", measured_words(report.energy) if report.energy else "not metered"),
    ]
    return "\n".join([*[printable(line) for line in lines if line], "", *_runs(report)])


def _labelled(label: str, value: str) -> str:
    return f"{label:<{LABEL}}{value}" if value else ""


def _state(job: ListedJob) -> str:
    code = "" if job.exit_code is None else f", exit code {job.exit_code}"
    return f"{job.state or 'in an unknown state'}{code}" + (f", signal {job.signal}" if job.signal else "")


def _whose(job: ListedJob) -> tuple[str, ...]:
    account = f"account {job.account}" if job.account else ""
    return (job.user or "", account, f"partition {job.partition}" if job.partition else "")


def _time(report: JobReport) -> str:
    limit = report.job.limit_seconds
    parts = [f"used {seconds(report.used_seconds)}"]
    if limit is not None:
        parts.append(f"of a limit of {seconds(limit)} ({percent(report.limit_ratio)})")
    if report.queued_seconds is not None:
        parts.append(f"after {seconds(report.queued_seconds)} in the queue")
    return " ".join(parts)


def _nodes(job: ListedJob) -> str:
    named = ",".join(job.nodes[:NODES]) + (",..." if len(job.nodes) > NODES else "")
    processors = "" if job.cpu_count is None else f", {count(job.cpu_count, 'processor')}"
    number = job.node_count or len(job.nodes)
    return f"{number or NONE}{processors}" + (f": {named}" if named else "")


def _efficiency(report: JobReport) -> str:
    parts = []
    if report.cpu_ratio is not None:
        parts.append(f"processors busy {percent(report.cpu_ratio)} of the time ({seconds(report.cpu_seconds)} of CPU)")
    if report.run_ratio is not None:
        parts.append(f"{percent(report.run_ratio)} of the job's time in runs")
    if report.peak_memory_bytes is not None:
        parts.append(f"largest task {quantity(float(report.peak_memory_bytes), 'bytes')}")
    return ", ".join(parts) or "not accounted for"


def _runs(report: JobReport) -> list[str]:
    if not report.runs:
        return ["No run of it is stored: crosswind run -- CMD in the job script records one."]
    left = report.run_count - len(report.runs)
    lines = [table(HEADINGS, [_line(run) for run in report.runs])]
    lines += [f"and {count(left, 'earlier run')}: crosswind runs lists them"] if left else []
    slow = [run for run in report.runs if run.cause]
    return [*lines, *[printable(f"{run.run_id}: {run.sentence}") for run in slow]]


def _line(run: JobRun) -> tuple[str, ...]:
    cause = words(run.cause) if run.cause else NONE
    times = (seconds(run.run_seconds), seconds(run.step_p50_seconds))
    return (run.run_id, run.workload, run.state, *times, words(run.verdict), cause)
