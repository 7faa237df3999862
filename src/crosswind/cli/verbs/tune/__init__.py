"""`crosswind tune`: a search for a good configuration, from a job script; an action is loaded when asked for."""

import argparse
import re
import sys
from importlib import import_module

from crosswind.cli.verbs.tune.arguments import configure
from crosswind.cli.verbs.tune.execution.ranks import rank_of_step
from crosswind.cli.verbs.tune.where import advised, passed_over
from crosswind.data.schema.errors import InvalidInputError, NotFoundError
from crosswind.settings import Settings

__all__ = ["ACTIONS", "configure", "execute"]

# Actions by the module that does them; those of `trials` are what a job script does between two runs.
ACTIONS = {
    **dict.fromkeys(("next", "suggest", "beat", "tell", "complete", "fail", "release"), "trials"),
    "report": "reporting",
    **dict.fromkeys(("create", "import"), "made"),
    **dict.fromkeys(("status", "best", "export"), "results"),
    **dict.fromkeys(("list", "show", "extend", "pause", "resume", "stop"), "life"),
    **dict.fromkeys(("rename", "delete", "enqueue", "retry"), "life"),
    "exec": "exec_",
}
# Words that studies and trials are stored or found by; of others some are paths, which may be any bytes.
TEXTS = ("study", "trial", "name", "owner", "reason", "failed", "infeasible", "pruned", "run", "checkpoint", "values")
NO_TEXT = re.compile(r"[\ud800-\udfff]")  # bytes of a word that are no UTF-8


def execute(arguments: argparse.Namespace, settings: Settings) -> int:
    """Does the action; its exit code."""
    if (sentence := passed_over(arguments)) and rank_of_step() in (None, 0):
        sys.stderr.write(f"crosswind: {sentence}\n")
    _check_texts(arguments)
    module = import_module(f"crosswind.cli.verbs.tune.{ACTIONS[arguments.action]}")
    try:
        code: int = module.execute(arguments, settings)
    except NotFoundError as error:
        raise advised(error, arguments, settings) from error
    return code


def _check_texts(arguments: argparse.Namespace) -> None:
    """Refuse words that no service can take. Raises: InvalidInputError."""
    for name in TEXTS[arguments.action == "create" :]:  # there `study` is a file
        given = getattr(arguments, name, None)
        for word in given if isinstance(given, list) else [given]:
            if isinstance(word, str) and NO_TEXT.search(word):
                raise InvalidInputError(f"{name} is {word[:80]!r}, expected UTF-8")
