"""The other studies in a shared folder as sources of a study."""

import logging
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from crosswind.data.schema.errors import ProjectError
from crosswind.data.schema.trial import Study, TrialRecord
from crosswind.models.tuner.evidence.prior_studies import bounded, features_of, is_comparable, prior_sources
from crosswind.models.tuner.search.search import PriorStudies
from crosswind.models.tuner.service.folder.clock import FolderClock
from crosswind.models.tuner.service.folder.study_folder import STUDY_FILE, StudyFolder, study_folders

STUDIES_MAX = 200  # newest folders that are looked into
TRIALS_MAX = 2_000  # of all of them together, after which no further study is read: every trial is a file

_log = logging.getLogger("crosswind.tuner")


@dataclass(frozen=True)
class FolderPriorStudies:
    """Looks up the comparable studies below `root`; one that cannot be read is left out, with a warning in the log."""

    root: Path
    clock: FolderClock

    def __call__(self, study: Study) -> PriorStudies:
        """Return sources of the studies, the newest first."""
        return PriorStudies(bounded(prior_sources(study, self._comparable(study))), features_of(study))

    def _comparable(self, study: Study) -> Iterator[tuple[Study, list[TrialRecord]]]:
        n_trials = 0
        folders = sorted(study_folders(self.root, self.clock), key=_created_ns, reverse=True)
        for folder in folders[:STUDIES_MAX]:
            try:
                other = folder.study()
                records = [turn.record for turn in folder.turns()] if is_comparable(study, other) else []
            except ProjectError as error:
                _log.warning("study %s does without a prior study: %s", study.name, error)
                continue
            if records:
                yield other, records
            n_trials += len(records)
            if n_trials > TRIALS_MAX:
                return


def _created_ns(folder: StudyFolder) -> int:
    with suppress(OSError):  # removed just now
        return (folder.path / STUDY_FILE).stat().st_mtime_ns
    return 0
