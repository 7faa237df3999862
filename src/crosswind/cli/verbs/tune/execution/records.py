"""Records of evaluated runs: where they go, and the judge who says by them whether a run was disturbed."""

import importlib.util
import sys
from collections.abc import Callable
from contextlib import AbstractContextManager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from crosswind.cli.verbs.tune.execution.doubts import Judge
from crosswind.client.remote import Remote
from crosswind.data.schema.errors import ProjectError
from crosswind.data.schema.trial import Study
from crosswind.ingest.ship.shipper import Shipper
from crosswind.ingest.ship.token import ship_token
from crosswind.models.tuner.service.service import StudyService
from crosswind.settings import Settings

if TYPE_CHECKING:
    from crosswind.data.schema.answers.studies import Disturbance
    from crosswind.data.store.store import Store

SHIPPINGS = 2  # a server may ask for another coding once


@dataclass(frozen=True)
class Records:
    """The keeper of a run's record, and the judge of the run by what was kept."""

    keep: Callable[[], None]
    judge: Judge


def records_of(place: tuple[str, str], settings: Settings, service: StudyService, study: Study) -> Records:
    """At the server that has the study, else in the store at hand."""
    kind, address = place
    if kind == "server":
        remote = Remote(address)
        judge = _careful(lambda run_id: remote.disturbance(study.study_id, run_id))
        return Records(lambda: _say(shipped(settings.spool, address)), judge)
    return Records(lambda: _say(_stored(settings)), stored_judge(lambda: _opened(settings), service, study))


def shipped(spool: Path, server: str) -> str:
    """Return what became of the spool: shipped, or kept where the server does not take it now."""
    shipper = Shipper(spool, server, ship_token())
    for _ in range(SHIPPINGS):
        if shipper.ship_all() > 0:
            break
    if problem := shipper.shipped.problem:
        return f"kept in {spool}: {problem}"
    refused = f", {shipper.shipped.rejected} refused and kept aside" if shipper.shipped.rejected else ""
    return f"{shipper.shipped.segments} segments of {spool} shipped to {server}{refused}"


def stored_judge(store: Callable[[], AbstractContextManager["Store"]], service: StudyService, study: Study) -> Judge:
    """Judges runs by the store at hand, beside the study's other runs."""

    def judge(run_id: str) -> "Disturbance | None":
        from crosswind.models.tuner.evidence.disturbed import disturbance_in  # noqa: PLC0415 - heavy

        trials = service.trials(study.study_id)
        with store() as opened:
            return disturbance_in(opened, study, trials, run_id)

    return _careful(judge)


def _careful(judge: Judge) -> Judge:
    """The same, which says why where it cannot judge."""

    def careful(run_id: str) -> "Disturbance | None":
        try:
            return judge(run_id)
        except ProjectError as error:
            _say(f"nothing tells whether run {run_id} was disturbed: {error}")
            return None

    return careful


def _stored(settings: Settings) -> str:
    """Return what became of the spool: stored, or kept where that is not possible now."""
    if importlib.util.find_spec("pyarrow") is None:
        return f"kept in {settings.spool}: crosswind ingest stores it where crosswind[server] is installed"
    try:
        from crosswind.cli.verbs.ingest.taking import store_spool  # noqa: PLC0415 - a compute node has no store to load

        loaded = store_spool(settings)
    except Exception as error:  # noqa: BLE001 - the program's exit code is ours, whatever becomes of the store
        return f"kept in {settings.spool}: {error}"
    problems = "".join(f"; {problem}" for problem in loaded.problems)
    return f"{loaded.rows} rows stored in {settings.home}{problems}"


def _opened(settings: Settings) -> "Store":
    from crosswind.client.installed_store import open_store  # noqa: PLC0415 - heavy

    return open_store(settings)


def _say(text: str) -> None:
    sys.stderr.write(f"crosswind: {text}\n")
