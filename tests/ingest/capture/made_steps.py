"""Steps of made-up runs, for the choice of ranks."""

import random
from collections.abc import Callable, Iterator

from crosswind.ingest.capture.steps import RankStep

STEP = 0.1  # seconds
Lag = Callable[[int, int], float]  # of a rank in a step, seconds


def made_steps(ranks: int, steps: int, lag: Lag = lambda _rank, _step: 0.0, seed: int = 0) -> Iterator[RankStep]:
    """Yield the rows of a synchronous run: each rank waits for the last one; 2 % of noise."""
    chance = random.Random(seed)
    for step in range(steps):
        own = [STEP * (1 + chance.gauss(0, 0.02)) + lag(rank, step) for rank in range(ranks)]
        for rank in range(ranks):
            yield RankStep(rank, step, own[rank], max(own) - own[rank])
