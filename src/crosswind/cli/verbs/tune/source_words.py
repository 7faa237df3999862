"""The sources of a study in words: those used, why, and with what weight, and those left out."""

import sys
from collections.abc import Iterator, Sequence

from crosswind.cli.text.output import printable
from crosswind.data.schema.answers.studies import StudySources
from crosswind.data.schema.trial import Study, TrialRecord
from crosswind.models.tuner.search.tuner import OWN
from crosswind.models.tuner.service.service import StudyService, StudyStatus

UNKNOWN = "no workload or command in common"


def source_text(study: Study, sources: StudySources) -> str:
    """The sources on a few lines; of a study that wants none, that."""
    if study.sources == ():
        return "sources: none, as the study says"
    return "\n".join(_lines(sources))


def say_first(service: StudyService, name: str, records: Sequence[TrialRecord]) -> None:
    """Say on standard error what the study learns from, if its search chose these trials before all others."""
    if not records or not records[0].weights or records[0].weights.get(OWN):
        return  # no source, or measurements of the study's own
    if [record.trial_id for record in service.trials(name) if record.weights] == [
        record.trial_id for record in records
    ]:
        status = service.status(name)
        sys.stderr.write(f"{source_text(status.study, status.sources)}\n")


def source_lines(status: StudyStatus) -> str:
    """The sources for `status`, empty where there is nothing to say."""
    sources = status.sources
    is_telling = sources.used or sources.left_out or status.study.sources == ()
    return source_text(status.study, sources) if is_telling else ""


def _lines(sources: StudySources) -> Iterator[str]:
    yield "sources that the study learns from:" if sources.used else "sources: none"
    for source in sources.used:
        weight = "" if source.weight is None else f"weight {source.weight:.2f}, "
        yield f"  {printable(source.name)}: {weight}{printable(source.why)}"
    if sources.own_weight is not None:
        yield f"  the study's own trials: weight {sources.own_weight:.2f}"
    if sources.left_out:
        yield "left out:"
    for one in sources.left_out:
        yield f"  {printable(one.name)}: {printable(one.reason)}"
    if sources.others_left_out:
        yield f"  and {sources.others_left_out} more"
    if not sources.used and any(one.reason.startswith(UNKNOWN) for one in sources.left_out):
        yield "one of these is of the same program? say sources: [NAME], or in both studies details: {workload: NAME}"
