"""Runs by the names that people type: an id, the end of one, or `latest`."""

from crosswind.client.protocol import Client
from crosswind.data.schema.answers.runs import ListedRun
from crosswind.data.schema.errors import InvalidInputError, NotFoundError

LATEST = "latest"
RUN_HELP = f"by its id, the end of one, or `{LATEST}`"
SHORTEST, LONGEST = 4, 200  # letters of an id's end, and of an id
LOOKED_AT = 500  # runs whose ids end so
NAMED = 5  # of several runs that a name may be


def run_named(client: Client, name: str) -> ListedRun:
    """Return the run of this id, or the only one whose id ends so, or the newest.

    Raises: NotFoundError, InvalidInputError where it may be several.
    """
    if name == LATEST:
        newest = client.runs(limit=1)
        if not newest:
            raise NotFoundError("no runs are stored yet: crosswind run -- torchrun ... records one")
        return newest[0]
    matches = client.runs(id_end=name, limit=LOOKED_AT) if 0 < len(name) <= LONGEST else ()
    if exact := [run for run in matches if run.run_id == name]:
        return exact[0]
    if not matches or len(name) < SHORTEST:
        raise NotFoundError(f"run {name[:LONGEST]!r} is not stored: crosswind runs lists those that are")
    if len(matches) > 1:
        raise InvalidInputError(
            f"run {name!r} could be {', '.join(run.run_id for run in matches[:NAMED])}: give more of the id"
        )
    return matches[0]
