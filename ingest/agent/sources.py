"""The sources that the settings select, among ours and other people's."""

from crosswind.data.schema.errors import InvalidInputError
from crosswind.ingest.agent.settings import AgentSettings
from crosswind.ingest.collectors import SOURCES, Refused, plugged_in_sources
from crosswind.ingest.collectors.source import Source


def known_sources(settings: AgentSettings) -> tuple[list[Source], list[Refused]]:
    """Return every source at the pace that the settings name, and other people's sources that cannot be used.

    Raises: InvalidInputError for settings of an unknown source, or that make no sense.
    """
    others, refused = plugged_in_sources(source.name for source in SOURCES)
    sources = [*SOURCES, *others]
    names = [source.name for source in sources]
    if unknown := sorted(settings.sources.keys() - set(names)):
        raise InvalidInputError(f"sources.{unknown[0]}: unknown; expected one of {', '.join(names)}")
    return [settings.paced(source) for source in sources], refused
