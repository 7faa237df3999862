"""Study services in this process: over the store here, or over a shared folder."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from crosswind.data.schema.errors import NotFoundError
from crosswind.ingest.load.ended_jobs import ended_jobs
from crosswind.models.tuner.service.service import StudyService
from crosswind.settings import Settings

if TYPE_CHECKING:
    from crosswind.models.tuner.search.search import MakeTuner  # heavy


@contextmanager
def store_service(settings: Settings, make_tuner: "MakeTuner | None" = None) -> Iterator[StudyService]:
    """The service over the store of this installation; new trials come from the usual tuner where none is named.

    Raises: NotFoundError for what is asked of it, saying where else a study may be.
    """
    from crosswind.data.store.store import Store  # noqa: PLC0415 - not for a folder
    from crosswind.models.tuner.evidence.stored_prior_studies import StoredPriorStudies  # noqa: PLC0415
    from crosswind.models.tuner.service.catalog import CatalogStudyService  # noqa: PLC0415

    with Store.open(settings.home, database=settings.database) as store:
        prior = StoredPriorStudies(store)
        try:
            yield CatalogStudyService(
                store.catalog, make_tuner=make_tuner, find_prior_studies=prior, dead_jobs=ended_jobs
            )
        except NotFoundError as error:
            raise NotFoundError(f"{error} of {settings.home}; --server URL and --folder DIR ask elsewhere") from error


@contextmanager
def folder_service(folder: Path, make_tuner: "MakeTuner | None" = None) -> Iterator[StudyService]:
    """The service over a shared folder, the same."""
    from crosswind.models.tuner.service.folder import FolderStudyService  # noqa: PLC0415 - not for the store

    yield FolderStudyService(folder, make_tuner=make_tuner, dead_jobs=ended_jobs)
