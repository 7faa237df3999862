"""Tags of runs that say what no column of theirs holds, as readers write them and models read them."""

from crosswind.data.schema.run import Run

ENERGY_TAG = "energy_joules"  # of all of its nodes, where whoever recorded the run measured it


def node_count_of(run: Run) -> int | None:
    """Return how many nodes a run had, by their names or its record; None where nobody says."""
    return len(set(run.nodes)) or run.facts.node_count
