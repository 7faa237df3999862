"""The other studies in a shared folder as sources of a study."""

import logging
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from crosswind.data.schema.errors import ProjectError
from crosswind.data.schema.trial import Study, TrialRecord
from crosswind.models.tuner.evidence.prior_studies import bounded, features_of, is_comparable, prior_sources
from crosswind.models.tuner.search.search import PriorStudies
from crosswind.models.tuner.service.folder.clock import FolderClock
from crosswind.models.tuner.service.folder.study_folder import STUDY_FILE, StudyFolder

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
        paths = sorted(self.root.glob(f"*/{STUDY_FILE}"), key=lambda path: path.stat().st_mtime_ns, reverse=True)
        for path in paths[:STUDIES_MAX]:
            try:
                folder = StudyFolder(path.parent, self.clock)
                other = folder.study()[0]
                records = [turn.record for turn in folder.turns()] if is_comparable(study, other) else []
            except ProjectError as error:
                _log.warning("study %s does without a prior study: %s", study.name, error)
                continue
            if records:
                yield other, records
            n_trials += len(records)
            if n_trials > TRIALS_MAX:
                return
