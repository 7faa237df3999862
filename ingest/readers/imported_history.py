"""A search that another tool made, on its way out of a reader."""

from collections.abc import Sequence
from dataclasses import replace

from crosswind.data.trial import History, Study, Trial
from crosswind.ingest.readers.reader import Report

NAME_LIMIT = 200


def imported_history(study: Study, trials: Sequence[Trial], report: Report) -> History:
    """The history, its trials counted as rows read.

    The study gets the end of its id to its name, for tools have many studies of one name and our names are unique.
    """
    end = f"-{study.study_id[-6:]}"
    name = study.name[: NAME_LIMIT - len(end)] + end
    report.read += len(trials)
    report.notes.append(f"study {name}: {len(trials)} trials")
    return History(replace(study, name=name), tuple(trials))
