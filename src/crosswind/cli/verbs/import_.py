"""`crosswind import`: what is stored, and which questions it can answer; with paths it stores them first."""

import argparse

from crosswind.cli.text.output import say_json
from crosswind.cli.verbs import ingest
from crosswind.cli.verbs.capabilities import say_capabilities
from crosswind.settings import Settings


def configure(parser: argparse.ArgumentParser) -> None:
    """Adds the verb's arguments, those of `crosswind ingest`."""
    ingest.configure(parser)


def execute(arguments: argparse.Namespace, settings: Settings) -> int:
    """Print what is stored; exit codes are those of `crosswind ingest`."""
    if arguments.paths:
        return ingest.execute(arguments, settings)
    from crosswind.client.installed_store import open_store  # noqa: PLC0415
    from crosswind.data.store.capabilities import capabilities, kept_in  # noqa: PLC0415 - heavy

    with open_store(settings) as store:
        kept = kept_in(store)
    if arguments.json:
        say_json({"kept": kept, "possible": list(capabilities(kept))})
    else:
        say_capabilities(kept)
    return 0
