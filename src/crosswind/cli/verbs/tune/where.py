"""The service that is asked: a server's, one in a shared folder, or that of the local store."""

import argparse
import os
from collections.abc import Iterator, Mapping
from contextlib import closing, contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING

from crosswind.cli.verbs.tune.filling import nearest
from crosswind.client.connection import SERVER
from crosswind.data.schema.errors import NotFoundError, ProjectError
from crosswind.data.schema.trial import Study
from crosswind.ingest.load.ended_jobs import ended_jobs
from crosswind.models.tuner.service.service import StudyService
from crosswind.settings import Settings

if TYPE_CHECKING:
    from crosswind.client.remote_studies import RemoteStudyService
    from crosswind.models.tuner.search.search import MakeTuner, PriorStudies  # heavy

FOLDER = "CROSSWIND_TUNE_FOLDER"


def configure_where(parser: argparse.ArgumentParser) -> None:
    """Adds the arguments that say where studies are."""
    where = parser.add_mutually_exclusive_group()
    where.add_argument("--server", metavar="URL", help=f"ask this server (default: ${SERVER})")
    where.add_argument(
        "--folder", type=Path, metavar="DIR", help=f"studies in a shared folder, without server (default: ${FOLDER})"
    )


def place_of(arguments: argparse.Namespace, environment: Mapping[str, str] = os.environ) -> tuple[str, str]:
    """Kind and address of the service: `folder` and its path, `server` and its URL, or `store` and nothing."""
    if arguments.folder:
        return "folder", str(arguments.folder.absolute())
    if arguments.server:
        return "server", arguments.server
    if folder := environment.get(FOLDER):
        return "folder", str(Path(folder).expanduser().absolute())
    if server := environment.get(SERVER):
        return "server", server
    return "store", ""


def passed_over(arguments: argparse.Namespace, environment: Mapping[str, str] = os.environ) -> str:
    """Return a sentence where the environment names a folder and a server, of which the folder has the studies."""
    server, (kind, folder) = environment.get(SERVER), place_of(arguments, environment)
    if arguments.folder or arguments.server or kind != "folder" or not server:
        return ""
    return f"studies are in {folder} (${FOLDER}), not at {server} (${SERVER}); --server or --folder asks one of them"


def advised(error: NotFoundError, arguments: argparse.Namespace, settings: Settings) -> NotFoundError:
    """Return the error as it is, or for a study that is not there with a near name, and where else it may be."""
    kind, _ = place = place_of(arguments)
    with suppress(ProjectError), service_at(place, settings) as service:
        studies = [status.study for status in service.studies()]
        if any(arguments.study in (study.name, study.study_id) for study in studies):
            return error
        near = nearest(arguments.study, [study.name for study in studies])
        where = f" of {settings.home}" if kind == "store" else ""
        elsewhere = "--server URL and --folder DIR ask elsewhere"
        return NotFoundError(f"{error}{where}{near} Otherwise {elsewhere}" if near else f"{error}{where}; {elsewhere}")
    return error


@contextmanager
def service_at(
    place: tuple[str, str], settings: Settings, *, make_tuner: "MakeTuner | None" = None
) -> Iterator[StudyService]:
    """The service of that place; a server's needs the standard library alone and chooses its tuner itself."""
    kind, address = place
    if kind == "server":
        with remote_service(address) as service:
            yield service
    elif kind == "folder":
        from crosswind.models.tuner.service.folder import FolderStudyService  # noqa: PLC0415 - heavy

        yield FolderStudyService(Path(address), make_tuner=make_tuner, dead_jobs=ended_jobs)
    else:
        with store_service(settings, make_tuner) as service:
            yield service


@contextmanager
def remote_service(address: str) -> "Iterator[RemoteStudyService]":
    """The service of a server."""
    from crosswind.client.http import Server  # noqa: PLC0415 - HTTP, which no folder needs
    from crosswind.client.remote_studies import RemoteStudyService  # noqa: PLC0415

    with closing(Server(address)) as server:
        yield RemoteStudyService(server)


@contextmanager
def store_service(settings: Settings, make_tuner: "MakeTuner | None" = None) -> Iterator[StudyService]:
    """The service of this installation's store; new trials come from the usual tuner where none is named."""
    from crosswind.client.installed_store import open_store  # noqa: PLC0415 - heavy
    from crosswind.models.tuner.service.catalog import CatalogStudyService  # noqa: PLC0415

    with open_store(settings) as store:

        def find_prior_studies(study: Study) -> "PriorStudies":
            from crosswind.models.tuner.evidence.stored_prior_studies import StoredPriorStudies  # noqa: PLC0415 - heavy

            return StoredPriorStudies(store)(study)

        yield CatalogStudyService(
            store.catalog, make_tuner=make_tuner, find_prior_studies=find_prior_studies, dead_jobs=ended_jobs
        )
