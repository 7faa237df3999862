"""The other studies in a shared folder as sources of a study."""

import logging
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from crosswind.data.schema.errors import ProjectError
from crosswind.data.schema.trial import Study, TrialRecord
from crosswind.models.tuner.evidence.agreement import Profile
from crosswind.models.tuner.evidence.prior_studies import UNREADABLE, Choice, choose_studies
from crosswind.models.tuner.search.search import PriorStudies
from crosswind.models.tuner.service.folder.clock import FolderClock
from crosswind.models.tuner.service.folder.study_folder import STUDY_FILE, StudyFolder, study_folders

STUDIES_MAX = 200  # newest folders that are looked into
TRIALS_MAX = 2_000  # of all of them together, after which no further study is read: every trial is a file

_log = logging.getLogger("crosswind.tuner")


@dataclass(frozen=True)
class FolderPriorStudies:
    """Looks up the comparable studies below `root`; one that cannot be read is left out, and that is said."""

    root: Path
    clock: FolderClock

    def __call__(self, study: Study) -> PriorStudies:
        """Return sources of the studies, the nearest first."""
        choice, folders = Choice(Profile.of(study)), dict[str, StudyFolder]()
        if study.sources == ():
            return PriorStudies((), choice.own.features)

        def records(other: Study) -> list[TrialRecord]:
            return [turn.record for turn in folders[other.study_id].turns()]

        choose_studies(choice, self._profiles(choice, folders), records, trials_max=TRIALS_MAX)
        return PriorStudies(tuple(choice.sources), choice.own.features, choice.report)

    def _profiles(self, choice: Choice, folders: dict[str, StudyFolder]) -> Iterator[Profile]:
        """Return what is known of the studies below `root`, the newest first, and note their folders by id."""
        newest = sorted(study_folders(self.root, self.clock), key=_created_ns, reverse=True)
        for folder in newest if choice.own.study.sources else newest[:STUDIES_MAX]:
            try:
                other = folder.study()
            except ProjectError as error:
                _log.warning("study %s does without a prior study: %s", choice.own.study.name, error)
                choice.leave_out(f"study in {folder.path.name}", f"{UNREADABLE}: {error}")
                continue
            folders[other.study_id] = folder
            yield Profile.of(other)


def _created_ns(folder: StudyFolder) -> int:
    with suppress(OSError):  # removed just now
        return (folder.path / STUDY_FILE).stat().st_mtime_ns
    return 0
