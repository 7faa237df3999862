"""Tags of runs that say what no column of theirs holds, as readers write them and models read them."""

from crosswind.data.schema.run import Run

ENERGY_TAG = "energy_joules"  # of all of its nodes, where whoever recorded the run measured it
NODE_COUNT_TAG = "node_count"  # of a run whose nodes are not named


def node_count_of(run: Run) -> int | None:
    """Return how many nodes a run had, by their names or its record; None where nobody says."""
    text = run.tags.get(NODE_COUNT_TAG, "")
    return len(set(run.nodes)) or (int(text) if text.isascii() and text.isdigit() and len(text) < 10 else None) or None
