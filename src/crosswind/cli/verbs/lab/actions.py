"""Actions of `crosswind lab`: run, faults, export, clean."""

import argparse
from importlib.util import find_spec
from pathlib import Path

from crosswind.cli.progress import Parts
from crosswind.cli.text.output import say, say_json, table
from crosswind.cli.verbs.lab.leaving import leaves_in_order
from crosswind.cli.verbs.lab.outcome import outcome_table, outcomes
from crosswind.dashboards.wording import seconds
from crosswind.data.schema.errors import InvalidInputError, UnavailableError
from crosswind.data.store.store import Store
from crosswind.ingest.lab.campaign import Step, run_plan
from crosswind.ingest.lab.export import export
from crosswind.ingest.lab.folders import Folders
from crosswind.ingest.lab.hosts.hosts import remove_abandoned
from crosswind.ingest.lab.hosts.machine_lock import alone
from crosswind.ingest.lab.hosts.programs import require_lab
from crosswind.ingest.lab.injectors import INJECTORS
from crosswind.ingest.lab.plans import PLANS, SEEDS
from crosswind.ingest.lab.plans.plan import Plan
from crosswind.settings import Settings

FAULT_HEADINGS = ("fault", "strength in", "from", "to", "what it is")


def execute(arguments: argparse.Namespace, settings: Settings) -> int:
    """Does the action."""
    if arguments.action == "faults":
        _list_faults(as_json=arguments.json)
        return 0
    home = (arguments.store or settings.home / "lab").absolute()
    {"run": _run, "export": _export, "clean": _clean}[arguments.action](arguments, home)
    return 0


def _run(arguments: argparse.Namespace, home: Path) -> None:
    if arguments.only is not None and arguments.only < 1:
        raise InvalidInputError(f"--only {arguments.only}: expected 1 or more")
    require_lab()
    if find_spec("torch") is None:
        raise UnavailableError("the lab trains with PyTorch, which is not installed: pip install 'crosswind[lab]'")
    remove_abandoned()
    plan = PLANS[arguments.plan](SEEDS[arguments.plan] if arguments.seed is None else arguments.seed)
    with Store.open(home) as store:
        problems = _measured(store, plan, arguments.only)
        effects = outcomes(store, plan)
    if arguments.json:
        say_json({"store": str(home), "runs": effects, "problems": problems})
        return
    say(f"\n{outcome_table(effects)}\n")
    for problem in problems:
        say(f"problem: {problem}")
    say(f"{len(effects)} of {len(plan.runs)} runs are in {home}: CROSSWIND_HOME={home} crosswind explain RUN says why.")


def _measured(store: Store, plan: Plan, only: int | None) -> list[str]:
    bars: list[Parts] = []

    def report(step: Step) -> None:
        if not bars:
            bars.append(Parts(step.total))
        else:
            bars[0].done()
        bars[0].start(_words(step))

    with leaves_in_order():
        return run_plan(plan, store, only=only, report=report)


def _words(step: Step) -> str:
    left = "" if step.seconds_left is None else f"{seconds(step.seconds_left)} left; "
    faults = ", ".join(f"{fault.kind} {fault.strength:g}" for fault in step.planned.faults) or "no fault"
    return f"{left}{step.planned.cohort.workload}: {faults}"


def _export(arguments: argparse.Namespace, home: Path) -> None:
    if not home.is_dir():
        raise UnavailableError(f"{home}: no such store: crosswind lab run --plan samples measures one")
    with Store.open(home) as store:
        written = export(store, arguments.folder)
    if arguments.json:
        say_json({"folder": str(arguments.folder), "bytes": written})
        return
    say(table(("file", "kB"), [(name, f"{size / 1000:.1f}") for name, size in written.items()]))
    say(f"{sum(written.values()) / 1e6:.2f} MB in {arguments.folder}")


def _clean(arguments: argparse.Namespace, home: Path) -> None:
    require_lab()
    folders = Folders(home)
    with alone():
        removed = remove_abandoned()
        if folders.remove_scratch():
            removed.append(str(folders.scratch))
    if arguments.json:
        say_json({"removed": removed})
    else:
        say(f"removed {', '.join(removed)}" if removed else "nothing of a killed lab is left")


def _list_faults(*, as_json: bool) -> None:
    lines = [
        (kind, injector.unit, *(f"{limit:g}" for limit in injector.limits), (injector.__doc__ or "").split("\n")[0])
        for kind, injector in INJECTORS.items()
    ]
    if as_json:
        say_json(
            [{"kind": kind, "unit": injector.unit, "limits": injector.limits} for kind, injector in INJECTORS.items()]
        )
    else:
        say(table(FAULT_HEADINGS, lines))
