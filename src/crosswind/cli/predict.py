"""`crosswind predict`: how long the next run, or its steps, will take, and how sure that is."""

import argparse
import json

from crosswind.cli.output import say, say_json
from crosswind.cli.render import outlook_text
from crosswind.data.errors import InvalidInputError
from crosswind.data.store import Store
from crosswind.data.trial import Configuration, Parameter
from crosswind.models.outlook import Question, next_run
from crosswind.settings import Settings


def configure(parser: argparse.ArgumentParser) -> None:
    """Adds the verb's arguments."""
    parser.add_argument("--workload", required=True, help="what will be run, or the name of its jobs")
    parser.add_argument("--ranks", type=int, required=True, help="how many ranks it will have; of jobs, nodes")
    parser.add_argument("--config", action="append", default=[], metavar="NAME=VALUE", help="a parameter's value")
    parser.add_argument("--system", help="where it will run (default: this system)")


def execute(arguments: argparse.Namespace, settings: Settings) -> int:
    """Predicts it."""
    if arguments.ranks < 1:
        raise InvalidInputError(f"--ranks {arguments.ranks}: expected 1 or more")
    system = arguments.system or settings.system
    question = Question(arguments.workload, system, configuration_of(arguments.config), arguments.ranks)
    with Store.open(settings.home, database=settings.database) as store:
        outlook = next_run(store, question)
    if arguments.json:
        say_json(outlook)
    else:
        say(outlook_text(outlook))
    return 0


def configuration_of(words: list[str]) -> Configuration:
    """The configuration that NAME=VALUE words give; numbers and booleans as in JSON. Raises: InvalidInputError."""
    configuration: dict[str, Parameter] = {}
    for word in words:
        name, separator, text = word.partition("=")
        if not separator or not name:
            raise InvalidInputError(f"--config {word!r}: expected NAME=VALUE")
        configuration[name] = _value(text)
    return configuration


def _value(text: str) -> Parameter:
    try:
        value = json.loads(text)
    except ValueError:
        return text
    return value if isinstance(value, int | float | bool) else text
