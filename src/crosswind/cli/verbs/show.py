"""`crosswind show`: one run, its outcome and its ranks."""

import argparse
import json

from crosswind.cli.text.energy import measured_words
from crosswind.cli.text.output import plain, printable, say, say_json
from crosswind.dashboards.wording import seconds
from crosswind.data.schema.errors import InvalidInputError, NotFoundError
from crosswind.data.schema.run import Rank, Run
from crosswind.data.schema.steps import PHASES
from crosswind.data.store.arrivals import latecomers
from crosswind.data.store.features import all_runs, summaries
from crosswind.data.store.store import Store
from crosswind.models.energy.measured import energy_of_run
from crosswind.settings import Settings

LATEST = "latest"
MOST_LATECOMERS = 3
ENERGY_LINE = 2  # below the run time


def configure(parser: argparse.ArgumentParser) -> None:
    """Adds the verb's arguments."""
    parser.add_argument("run", nargs="?", default=LATEST, help="run id, the end of one, or `latest` (default)")


def execute(arguments: argparse.Namespace, settings: Settings) -> int:
    """Shows it."""
    with Store.open(settings.home, database=settings.database) as store:
        run = run_named(store, arguments.run)
        [outcome] = json.loads(summaries(store, [run]).to_json(orient="records"))
        with store.catalog.read() as session:
            ranks = session.runs.ranks(run.run_id)
        late = json.loads(latecomers(store, run.run_id).to_json(orient="records"))
        energy = energy_of_run(store, run, settings.intensity)
    if arguments.json:
        say_json({"run": plain(run), "outcome": outcome, "ranks": ranks, "latecomers": late, "energy": energy})
    else:
        lines = _lines(run, outcome, ranks, late)
        if energy is not None:
            lines.insert(ENERGY_LINE, f"energy {measured_words(energy)}")
        say("\n".join(map(printable, lines)))
    return 0


def run_named(store: Store, name: str) -> Run:
    """The run of this id, or the only one whose id ends so, or the newest. Raises: NotFoundError, InvalidInputError."""
    if name == LATEST:
        newest = all_runs(store, limit=1)
        if not newest:
            raise NotFoundError("no runs are stored yet: crosswind run -- torchrun ... records one")
        return newest[0]
    matches = [run for run in all_runs(store) if run.run_id == name] or [
        run for run in all_runs(store) if len(name) >= 4 and run.run_id.endswith(name)
    ]
    if not matches:
        raise NotFoundError(f"run {name!r} is not stored: crosswind runs lists those that are")
    if len(matches) > 1:
        raise InvalidInputError(
            f"run {name!r} could be {', '.join(run.run_id for run in matches[:5])}: give more of the id"
        )
    return matches[0]


def _lines(run: Run, outcome: dict[str, float | None], ranks: list[Rank], late: list[dict[str, float]]) -> list[str]:
    lines = [
        f"run {run.run_id}: {run.state}" + (f", exit code {run.exit_code}" if run.exit_code is not None else ""),
        f"workload {run.workload} on {run.system}, {run.world_size or '?'} ranks, took {seconds(run.seconds)}",
        "configuration " + (" ".join(f"{name}={value}" for name, value in run.configuration.items()) or "-"),
    ]
    if outcome["steps"]:
        cov = outcome["step_cov_ratio"]
        variability = f", CoV {cov:.1%}" if cov is not None else ""
        lines.append(f"{outcome['steps']:.0f} steps: p50 {seconds(outcome['step_p50_seconds'])}{variability}")
        lines += [f"  {phase:<10} {seconds(outcome[f'{phase}_seconds'])} a step" for phase in PHASES]
    lines += [
        f"rank {latecomer['rank']:.0f} was last to arrive in {latecomer['share']:.0%} of the steps, "
        f"by {seconds(latecomer['late_seconds'])} in the median of them"
        for latecomer in late[:MOST_LATECOMERS]
    ]
    lines += [f"rank {rank.rank} on {rank.node}, pid {rank.pid}" for rank in ranks]
    lines += [f"{name} {value}" for name, value in {**run.tags, **run.software, **run.facts.given}.items()]
    if run.command:
        lines.append("command " + " ".join(run.command))
    return lines
