"""The service that is asked: a server's, one in a shared folder, or that of the local store."""

import argparse
import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from crosswind.cli.asking import SERVER
from crosswind.cli.tune.remote import RemoteStudyService
from crosswind.models.tuner.service.service import StudyService
from crosswind.settings import Settings

if TYPE_CHECKING:
    from crosswind.models.tuner.search.search import MakeTuner  # heavy

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


@contextmanager
def service_at(
    place: tuple[str, str], settings: Settings, *, make_tuner: "MakeTuner | None" = None
) -> Iterator[StudyService]:
    """The service of that place; a server's needs the standard library alone and chooses its tuner itself."""
    kind, address = place
    if kind == "server":
        yield RemoteStudyService(address)
        return
    from crosswind.cli.tune.at_hand import folder_service, store_service  # noqa: PLC0415 - heavy

    at_hand = folder_service(Path(address), make_tuner) if kind == "folder" else store_service(settings, make_tuner)
    with at_hand as service:
        yield service
