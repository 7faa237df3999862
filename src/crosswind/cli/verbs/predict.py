"""`crosswind predict`: how long a run to come, or its steps, will take, on one scale or many, and how sure that is."""

import argparse

from crosswind.cli.arguments import OUTCOMES, configure_run, question_of
from crosswind.cli.progress import Progress
from crosswind.cli.quantities import above_zero, whole, zero_or_more
from crosswind.cli.text.output import notice, say_answer
from crosswind.cli.text.prediction import answer_text
from crosswind.cli.text.scaling import scaling_text
from crosswind.client.connection import connect
from crosswind.client.protocol import Client
from crosswind.data.schema.errors import InvalidInputError
from crosswind.data.schema.question import SCALES_MAX, Price, Scales
from crosswind.settings import Settings

PRICES = ("node_watts", "per_node_hour", "carbon_grams_per_kilowatt_hour")
OF_ONE = ("ranks", "outcome", "limit")
OF_SCALES = ("ranks_per_node", "deadline", "now", *PRICES)


def configure(parser: argparse.ArgumentParser) -> None:
    """Adds the verb's arguments."""
    configure_run(parser)
    parser.add_argument("--outcome", choices=sorted(OUTCOMES), help="default: the finest that was recorded")
    parser.add_argument("--limit", type=above_zero, metavar="SECONDS", help="how likely is it to take longer?")
    parser.add_argument("--nodes", metavar="1..64", help="the same work on these numbers of nodes: 1,2,3 or 1..64")
    parser.add_argument("--ranks-per-node", type=whole, metavar="COUNT", help="with --nodes (default 1)")
    parser.add_argument(
        "--deadline", type=above_zero, metavar="SECONDS", help="with --nodes: the cheapest that keeps it"
    )
    parser.add_argument("--now", type=whole, metavar="NODES", help="with --nodes: expand or shrink from these?")
    parser.add_argument("--node-watts", type=zero_or_more, metavar="WATTS", help="with --nodes: what a node draws")
    parser.add_argument("--per-node-hour", type=zero_or_more, metavar="COST", help="with --nodes: what a node costs")
    parser.add_argument(
        "--carbon-grams-per-kilowatt-hour",
        type=zero_or_more,
        metavar="GRAMS",
        help="with --nodes and --node-watts: of the electricity",
    )


def execute(arguments: argparse.Namespace, settings: Settings) -> int:
    """Predicts it."""
    _check_together(arguments)
    with connect(arguments.server, settings=settings, notice=notice) as client:
        if arguments.nodes is None:
            _show_one(client, arguments, settings)
        else:
            _show_scales(client, arguments, settings)
    return 0


def _check_together(arguments: argparse.Namespace) -> None:
    """Refuse options that would be ignored. Raises: InvalidInputError."""
    is_one = arguments.nodes is None
    for name in OF_SCALES if is_one else OF_ONE:
        if getattr(arguments, name) is not None:
            given = f"--{name.replace('_', '-')}"
            raise InvalidInputError(f"{given} goes with --nodes" if is_one else f"{given} does not go with --nodes")
    if not is_one and arguments.like is not None and arguments.ranks_per_node is None:
        raise InvalidInputError("--like with --nodes: expected --ranks-per-node too")


def _show_one(client: Client, arguments: argparse.Namespace, settings: Settings) -> None:
    outcome = OUTCOMES[arguments.outcome] if arguments.outcome else None
    with Progress("predicting"):
        answer = client.predict(question_of(arguments, settings), outcome, limit_seconds=arguments.limit)
    say_answer(answer, answer_text, as_json=arguments.json)


def _show_scales(client: Client, arguments: argparse.Namespace, settings: Settings) -> None:
    counts, ranks_per_node = node_counts(arguments.nodes), arguments.ranks_per_node or 1
    question = question_of(arguments, settings, ranks=counts[0] * ranks_per_node)
    scales = Scales(counts, ranks_per_node, arguments.deadline, arguments.now)
    price = Price(**{name: getattr(arguments, name) for name in PRICES})
    with Progress("predicting"):
        advice = client.advise_scaling(question, scales, price)
    say_answer(advice, scaling_text, as_json=arguments.json)


def node_counts(words: str) -> list[int]:
    """Return the numbers of `1,2,3`, or of `1..64` by doublings, both ends included. Raises: InvalidInputError."""
    first, dots, last = words.partition("..")
    try:
        counts = _doublings(int(first), int(last)) if dots else [int(word) for word in words.split(",")]
    except ValueError:
        raise InvalidInputError(f"--nodes {words[:40]!r}: expected numbers as in 1,2,4 or 1..64") from None
    if not 1 <= len(counts) <= SCALES_MAX or counts != sorted(set(counts)) or counts[0] < 1:
        raise InvalidInputError(f"--nodes {words[:40]!r}: expected 1 to {SCALES_MAX} rising numbers from 1 on")
    return counts


def _doublings(first: int, last: int) -> list[int]:
    if not 1 <= first <= last:
        return []
    doubled = [first << power for power in range(64) if first << power < last]
    return [*doubled, last]
