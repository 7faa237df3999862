"""The ranking of what is slower than its peers, over all runs."""

SLOWER = 0.05  # than the peers' median: what is less is no straggler
SURE = 0.95  # probability of being slower by more than that, from which on something is named
FEWEST_RUNS = 3  # in which it was compared, below which nothing is named
