"""A survey of this node's sources: which work here, what they give and cost, and how to get the others."""

from collections.abc import Iterator
from dataclasses import dataclass, replace

from crosswind.data.schema.errors import ProjectError
from crosswind.ingest.agent.reading import InlineReader, ThreadReader
from crosswind.ingest.agent.settings import AgentSettings
from crosswind.ingest.agent.sources import known_sources
from crosswind.ingest.collectors import made, reason_of
from crosswind.ingest.collectors.source import Host, Source
from crosswind.ingest.kernel.kernel_files import KernelFiles

PATIENCE_SECONDS = 30.0  # with a source that may hang


@dataclass(frozen=True, slots=True)
class SourceStatus:
    """One source: `values` and `seconds` if it works, else the `reason`, and `advice` on how to get it.

    A source that is not `wanted` is read only if the settings enable it.
    """

    name: str
    available: bool
    reason: str | None = None
    advice: str = ""
    values: int = 0
    seconds: float = 0.0
    wanted: bool = True


def survey(host: Host, settings: AgentSettings) -> Iterator[SourceStatus]:
    """Read every source, ours and other people's, once. Raises: InvalidInputError for settings of unknown sources."""
    sources, refused = known_sources(settings)
    for source in sources:
        yield _status(source, host, settings)
    for refusal in refused:
        yield SourceStatus(refusal.name, False, refusal.reason, "ask its author")


def _status(source: Source, host: Host, settings: AgentSettings) -> SourceStatus:
    try:
        is_wanted = settings.is_enabled(source)
        own = replace(host, files=KernelFiles())
        reader = InlineReader(source.name, made(source, own, settings.options(source)))
        slow = ThreadReader(reader, PATIENCE_SECONDS)
        slow.readings(is_due=True)
        answers = slow.finish(source.timeout_seconds or PATIENCE_SECONDS)
    except ProjectError as error:
        return SourceStatus(source.name, False, reason_of(error), source.advice)
    if not answers:
        return SourceStatus(source.name, False, "it did not answer in time", source.advice, wanted=is_wanted)
    [reading] = answers
    if reading.reason:
        return SourceStatus(source.name, False, reading.reason, source.advice, wanted=is_wanted)
    if source.timeout_seconds is None:
        reading = reader.read()  # the first one opened files; this one shows the lasting cost
    values = sum(value is not None for row in reading.rows for value in row[1:])
    return SourceStatus(source.name, True, None, "", values, reading.duration_seconds, is_wanted)
