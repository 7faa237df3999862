"""`crosswind audit`: who shared, took along, deleted or revealed what, and when."""

import argparse
from dataclasses import asdict

from crosswind.cli.arguments import configure_server
from crosswind.cli.text.output import say, say_json, table
from crosswind.client.connection import connect
from crosswind.client.own_rows import AUDIT_LISTED
from crosswind.data.schema.access import AuditEntry
from crosswind.data.schema.answers.fields import rfc3339
from crosswind.settings import Settings


def configure(parser: argparse.ArgumentParser) -> None:
    """Adds the verb's arguments."""
    parser.add_argument("--who", metavar="NAME", help="only acts of this principal, such as `person ann`")
    parser.add_argument("--act", help="only acts of this kind, such as `reveal pseudonym`")
    parser.add_argument("--on", metavar="NAME", help="only acts on this run, study or pseudonym")
    parser.add_argument("--limit", type=int, default=AUDIT_LISTED, help=f"at most this many (default {AUDIT_LISTED})")
    parser.epilog = "Entries are kept for a year, or for CROSSWIND_AUDIT_DAYS."
    configure_server(parser)


def execute(arguments: argparse.Namespace, settings: Settings) -> int:
    """Lists it, newest first. Raises: ForbiddenError."""
    with connect(arguments.server, settings=settings) as client:
        entries = client.own.audit(arguments.who, arguments.act, arguments.on, limit=arguments.limit)
    if arguments.json:
        say_json([asdict(entry) for entry in entries])
    elif entries:
        say(table(("when", "who", "act", "on", "details"), [_line(entry) for entry in entries]))
    else:
        say("No act is kept.")
    return 0


def _line(entry: AuditEntry) -> tuple[str, ...]:
    details = " ".join(f"{name}={value}" for name, value in entry.details.items())
    return str(rfc3339(entry.at_ns)), entry.who, entry.act, entry.subject, details
