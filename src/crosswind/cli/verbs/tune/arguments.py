"""The actions of `crosswind tune` and their arguments."""

import argparse
from pathlib import Path
from typing import TypeAlias

from crosswind.cli.verbs.tune.context import VARIABLE, configure_context
from crosswind.cli.verbs.tune.exec_arguments import ActionParser, configure_exec
from crosswind.cli.verbs.tune.where import configure_where
from crosswind.data.schema.trial import SEARCHES, STOP_AUTO

LEASE_SECONDS = 24 * 3600.0  # of a trial that nobody beats for
UNCHARGED = "without an objective: by no fault of the configuration, so the budget does not count it"
Actions: TypeAlias = "argparse._SubParsersAction[ActionParser]"


def configure(parser: argparse.ArgumentParser) -> None:
    """Adds the verb's arguments."""
    actions = parser.add_subparsers(dest="action", metavar="ACTION", required=True, parser_class=ActionParser)
    configure_exec(_action(actions, "exec", "ask for a trial, run it, record it, tell its result: exec STUDY -- CMD"))
    _configure_making(actions)
    _configure_trials(actions)
    _configure_results(actions)
    _configure_life(actions)


def _configure_making(actions: Actions) -> None:
    create = _action(actions, "create", "a study, from a YAML, JSON or TOML file: create STUDY.yaml")
    create.add_argument("space", type=Path, nargs="?", help="a JSON file of parameters alone: create NAME SPACE.json")
    create.add_argument("--objective", default=None, help="with SPACE.json: what is measured; lower is better")
    create.add_argument("--unit", help="with SPACE.json: the objective's unit (default: as its name ends)")
    create.add_argument("--seed", type=int, default=0, help="with SPACE.json: of the search")
    create.add_argument("--trials", type=int, metavar="N", help="the budget: how many trials may be begun")
    create.add_argument(
        "--sources", metavar="auto|none|NAME,...", help="what to learn from: what suits it, nothing, or these studies"
    )
    create.add_argument("--search", choices=SEARCHES, help="who searches (default: as the file says, else Crosswind)")
    create.add_argument("--stop", choices=(STOP_AUTO,), help="no more trials once they are not worth it")
    create.add_argument("--if-absent", action="store_true", help="leave the same study as it is; refuse another one")
    old = _action(actions, "import", "take over finished trials of Optuna, Ray Tune, Kernel Tuner or a CSV file")
    help_text = "a file, an experiment's folder, the URL of Optuna's database, or a folder of which every file is read"
    old.add_argument("file", metavar="PATH", help=help_text)
    old.add_argument("--of", metavar="NAME", help="of a file with several studies, the one meant")


def _configure_trials(actions: Actions) -> None:
    for name in ("next", "suggest"):
        asked = _action(actions, name, "the next configuration to try, under a lease")
        asked.add_argument("--count", type=int, default=1)
        asked.add_argument("--lease", type=float, default=LEASE_SECONDS, metavar="SECONDS", help="without `tune beat`")
        asked.add_argument("--slot", default="", help="tells apart those who ask side by side in one job")
        configure_context(asked, "of the input at hand: chosen by what earlier trials showed with theirs")
        asked.add_argument("--format", choices=("table", "env"), default="table", help="env: lines for eval")
    beat = _trial(actions, "beat", "keep the lease of a trial that still runs")
    beat.add_argument("--lease", type=float, default=LEASE_SECONDS, metavar="SECONDS", help="from now on")
    for name in ("tell", "complete"):
        report = _trial(actions, name, "what was measured")
        report.add_argument("objective", type=float, nargs="?", help="of a trial that was measured")
        report.add_argument("--outcome", action="append", default=[], metavar="NAME=NUMBER", help="also measured")
        configure_context(report, f"of the input it was measured on (default: ${VARIABLE})")
        report.add_argument("--run", metavar="RUN", help="the run that it was measured in")
        report.add_argument("--failed", metavar="REASON", help="it has no objective: it broke")
        report.add_argument("--infeasible", metavar="REASON", help="it has no objective: it cannot run")
        report.add_argument("--pruned", metavar="REASON", help="it has no objective: it was stopped early")
        report.add_argument("--uncharged", action="store_true", help=UNCHARGED)
    value = _trial(actions, "report", "an intermediate value of a trial that still runs; 3 where it should stop")
    value.add_argument("value", type=float, help="of the objective so far, as measured")
    value.add_argument("--step", type=int, required=True, metavar="N", help="such as the epoch, from 0 on")
    failed = _trial(actions, "fail", "end a trial without an objective")
    failed.add_argument("--uncharged", action="store_true", help=UNCHARGED)
    failed.add_argument("--reason", default="failed")
    configure_context(failed, f"of the input it failed on (default: ${VARIABLE})")
    released = _trial(actions, "release", "give a trial back, unmeasured")
    released.add_argument("--checkpoint", metavar="PATH", help="where its work can be resumed")


def _configure_results(actions: Actions) -> None:
    _action(actions, "status", "every trial, and the best so far")
    best = _action(actions, "best", "the best configuration, and how sure that is")
    best.add_argument("--format", choices=("text", "json", "yaml", "toml", "env"), default="text")
    export = _action(actions, "export", "all trials as a table, or for other tuners")
    export.add_argument("--format", choices=("csv", "json", "optuna", "t4", "ray"), default="csv")


def _configure_life(actions: Actions) -> None:
    _whole(actions.add_parser("list", help="every study, its trials and its best", allow_abbrev=False))
    _action(actions, "show", "one study: its space, objective, budget, newest trials and best")
    extend = _action(actions, "extend", "add to a study's budget")
    extend.add_argument("--trials", type=int, metavar="N", help="so many more")
    extend.add_argument("--hours", type=float, metavar="H", help="so many more, from now on if the others are over")
    _action(actions, "pause", "hand out no trial until `tune resume`; workers wait, results are taken")
    _action(actions, "resume", "hand out trials again, after a pause or a stop")
    _action(actions, "stop", "hand out no more trials: workers end, results of running trials are taken")
    rename = _action(actions, "rename", "give a study another name")
    rename.add_argument("name", help="the new name")
    delete = _action(actions, "delete", "remove a study with its trials; stored runs stay")
    delete.add_argument("--yes", action="store_true", help="also with trials, without asking")
    for changed in (rename, delete):
        changed.add_argument("--force", action="store_true", help="also while trials are being evaluated")
    enqueue = _action(actions, "enqueue", "a configuration to be tried before anything new")
    enqueue.add_argument("values", nargs="*", metavar="NAME=VALUE", help="a value of every parameter that applies")
    enqueue.add_argument(
        "--config", action="append", type=Path, default=[], metavar="FILE", help="of JSON, YAML or TOML"
    )
    retry = _action(actions, "retry", "try the configuration of a trial again that ended without an objective")
    retry.add_argument("trial", help="the trial's id")


def _trial(actions: Actions, name: str, help_text: str) -> ActionParser:
    parser = _action(actions, name, help_text)
    parser.add_argument("trial", help="the trial's id")
    parser.add_argument("--owner", help="who holds it (default: $CROSSWIND_TRIAL_OWNER)")
    return parser


def _action(actions: Actions, name: str, help_text: str) -> ActionParser:
    parser = actions.add_parser(name, help=help_text, description=f"{help_text}.", allow_abbrev=False)
    parser.add_argument("study", help="a study file" if name == "create" else "the study's name or id")
    return _whole(parser)


def _whole(parser: ActionParser) -> ActionParser:
    """Return the parser with the arguments of every action."""
    configure_where(parser)
    # Suppressed, so that its absence here does not undo a --json before the action.
    parser.add_argument("--json", action="store_true", default=argparse.SUPPRESS, help="print JSON for machines")
    return parser
