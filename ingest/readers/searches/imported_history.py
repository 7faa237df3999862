"""Histories of another tool's search, with a unique name for the study."""

import json
from collections.abc import Sequence
from dataclasses import replace

from crosswind.data.schema.errors import MalformedError
from crosswind.data.schema.trial import History, Study, Trial
from crosswind.ingest.reader.reader import Report
from crosswind.ingest.readers.scalars import storable

NAME_LIMIT = 200


def imported_history(study: Study, trials: Sequence[Trial], report: Report) -> History:
    """Return the history, its trials counted as rows read.

    The end of the study's id is added to its name, as tools may have many studies of one name and our names are unique.
    Raises: MalformedError for names and values that cannot be stored as text.
    """
    for text in (json.dumps(study.space, ensure_ascii=False), study.objective):
        if storable(text, len(text)) != text or "\\u0000" in text:
            raise MalformedError(f"study {study.name!r:.80}: {text!r:.200} has characters that no text has")
    end = f"-{study.study_id[-6:]}"
    name = storable(study.name, NAME_LIMIT - len(end)) + end
    report.read += len(trials)
    report.notes.append(f"study {name}: {len(trials)} trials")
    return History(replace(study, name=name), tuple(trials))
