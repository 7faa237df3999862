"""`crosswind check`: measures the nodes of an allocation before a job, and says which to leave out.

Exit codes: 0 no node is blamed, 1 some are, 2 it could not be checked.
"""

import argparse
import os
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path

from crosswind.cli.arguments import configure_server
from crosswind.cli.progress import Progress, stopwatch
from crosswind.cli.quantities import above_zero
from crosswind.cli.text.check import exclude_line, text
from crosswind.cli.text.output import say, say_json
from crosswind.cli.verbs.check_history import history
from crosswind.data.schema.checks import Measured
from crosswind.data.schema.errors import InvalidInputError, ProjectError
from crosswind.data.schema.run import new_ulid
from crosswind.ingest.preflight.check import Checked, check
from crosswind.ingest.preflight.measures import WEIGHTS, chosen
from crosswind.ingest.preflight.meeting import meet
from crosswind.ingest.preflight.peers import Peers
from crosswind.ingest.preflight.record import Occasion, record
from crosswind.models.preflight.links import link_values
from crosswind.models.preflight.report import Report
from crosswind.models.preflight.verdict import judged
from crosswind.settings import Settings

SECONDS, SECONDS_LEAST, SECONDS_MOST = 30.0, 1.0, 3600.0
WAIT, WAIT_MOST = 60.0, 3600.0
SLACK_SECONDS = 30.0  # for which a rank may be late
FINE, BLAMED, NOT_CHECKED = 0, 1, 2


def configure(parser: argparse.ArgumentParser) -> None:
    """Adds the verb's arguments."""
    parser.add_argument("--seconds", type=above_zero, default=SECONDS, help=f"in total (default {SECONDS:g})")
    parser.add_argument("--only", metavar="A,B", help=f"some of {','.join(WEIGHTS)} (default: all)")
    parser.add_argument("--folder", type=Path, help="where the disk is measured (default: for temporary files)")
    parser.add_argument(
        "--wait", type=above_zero, default=WAIT, metavar="SECONDS", help=f"for all ranks to come (default {WAIT:g})"
    )
    parser.add_argument("--exclude-list", action="store_true", help="print Slurm's --exclude=... alone, or nothing")
    parser.add_argument("--no-record", action="store_true", help="leave the spool alone")
    configure_server(parser)


def execute(arguments: argparse.Namespace, settings: Settings) -> int:
    """Measure with the other ranks; rank 0 prints."""
    try:
        return _checked(arguments, settings)
    except (ProjectError, OSError, RuntimeError, ModuleNotFoundError) as error:  # 1 means nodes to blame
        sys.stderr.write(f"crosswind: check: {error}\n")
        return NOT_CHECKED


def _checked(arguments: argparse.Namespace, settings: Settings) -> int:
    names, folder = chosen(arguments.only), arguments.folder or Path(tempfile.gettempdir())
    _check_range("--seconds", arguments.seconds, SECONDS_LEAST, SECONDS_MOST)
    _check_range("--wait", arguments.wait, SECONDS_LEAST, WAIT_MOST)
    began_ns = time.time_ns()
    peers = meet(arguments.wait, silence_seconds=arguments.seconds + SLACK_SECONDS)
    try:
        with Progress("measuring", arguments.seconds, unit="s", look=stopwatch()):
            checked = check(peers, names, folder, arguments.seconds)
    finally:
        peers.close()
    if checked is None:
        return FINE
    report = _report(checked, peers, began_ns, settings, server=arguments.server)
    if not arguments.no_record:
        report = _recorded(report, settings)
    _print(report, arguments)
    return BLAMED if report.verdict.blames else FINE


def _check_range(option: str, value: float, least: float, most: float) -> None:
    if not least <= value <= most:
        raise InvalidInputError(f"{option} {value:g}: expected {least:g} to {most:g}")


def _left_out(checked: Checked, measured: Sequence[Measured]) -> Iterator[str]:
    """Yield notes on measurements that the time was too short for."""
    possible = len(checked.nodes) * (len(checked.nodes) - 1) // 2
    links = sum(measurement.measure == "bandwidth" for measurement in measured)
    if 0 < links < possible:
        yield f"{links} of {possible} links were measured in the time; --seconds gives more"


def _report(checked: Checked, peers: Peers, began_ns: int, settings: Settings, *, server: str | None) -> Report:
    if not checked.measured:
        reasons = (
            "; ".join(dict.fromkeys(failure.reason for failure in checked.failed)) or "no measure needs one node alone"
        )
        raise InvalidInputError(f"nothing could be measured: {reasons:.500}")
    measured = (*checked.measured, *link_values(checked.measured))
    earlier, note = history(settings, server)
    failures = [(failure.node, failure.measure, failure.reason) for failure in checked.failed]
    verdict = judged(checked.nodes, measured, failures, earlier)
    notes = tuple(remark for remark in (peers.note, note, *_left_out(checked, measured)) if remark)
    return Report(
        check_id=new_ulid(),
        system=settings.system,
        began_ns=began_ns,
        seconds=(time.time_ns() - began_ns) * 1e-9,
        method=peers.method,
        ranks=peers.place.world_size,
        nodes=checked.nodes,
        measured=measured,
        verdict=verdict,
        exclude=exclude_line(verdict.excluded),
        notes=notes,
        job_id=peers.place.job_id,
    )


def _recorded(report: Report, settings: Settings) -> Report:
    """Return the report, after recording it; a spool that fails becomes a note."""
    try:
        record(
            settings.spool,
            Occasion(report.check_id, report.began_ns, report.system, report.job_id),
            report.measured,
        )
    except ProjectError as error:
        return replace(report, notes=(*report.notes, f"not recorded: {error}"))
    return report


def _print(report: Report, arguments: argparse.Namespace) -> None:
    if arguments.json:
        say_json(report)
    elif arguments.exclude_list:
        _say_if_any(report.exclude)
        _complain(report)
    else:
        say(text(report))


def _say_if_any(line: str) -> None:
    if line:
        say(line)


def _complain(report: Report) -> None:
    """Write reasons and notes to the error output, away from a script's output."""
    notes: Sequence[str] = (*(f"{blame.node}: {blame.reason}" for blame in report.verdict.blames), *report.notes)
    sys.stderr.write("".join(f"crosswind: check: {note}{os.linesep}" for note in notes))
