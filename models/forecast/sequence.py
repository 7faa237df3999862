"""A small recurrent network over the newest runs; torch trains it, predicting needs numpy alone."""

import importlib.util
from dataclasses import dataclass, field
from typing import Any, ClassVar, Self

import numpy as np

from crosswind.data.schema.errors import UnavailableError
from crosswind.data.schema.prediction import Floats
from crosswind.models.forecast.observations import HOUR_NS, Lagged, Observations, Targets, harmonics, targets_of
from crosswind.models.surrogate.surrogate import LEVELS, NotFittedError

LENGTH = 24  # runs before the cutoff that the network reads
UNITS = 16
EPOCHS = 12
BATCH = 128
ROWS_MAX = 4000
LEARNING_RATE = 5e-3


def has_torch() -> bool:
    """Return whether the extra `torch` is installed."""
    return importlib.util.find_spec("torch") is not None


@dataclass
class Recurrent:
    """A gated recurrent unit over the runs known last; a linear layer gives the quantiles for a horizon and hour.

    Source: Cho et al. 2014; the weights are arrays, and predicting needs numpy alone.
    """

    seed: int = 0
    name: ClassVar[str] = "recurrent"
    weights: dict[str, Floats] = field(default_factory=dict, repr=False)

    def fit(self, past: Observations, lagged: Lagged, horizons_hours: tuple[float, ...]) -> Self:  # noqa: ARG002
        """Learns by pinball loss. Raises: UnavailableError without torch."""
        if not has_torch():
            raise UnavailableError("the recurrent weather model needs torch: pip install 'crosswind[torch]'")
        targets, y = targets_of(past.newest(max(ROWS_MAX // len(horizons_hours), 1)), horizons_hours)
        self.weights = _learned(sequences(past, targets), query(targets), y, self.seed)
        return self

    def predict(self, past: Observations, targets: Targets) -> Floats:
        """The quantiles, sorted. Raises: NotFittedError."""
        if not self.weights:
            raise NotFittedError("Recurrent.predict came before fit")
        read = sequences(past, targets)
        state = np.zeros((len(read), UNITS))
        for step in range(LENGTH):
            state = _gated(self.weights, read[:, step], state)
        last = np.column_stack([state, query(targets)])
        predicted: Floats = last @ self.weights["out.weight"].T + self.weights["out.bias"]
        return np.sort(predicted, axis=1)


def sequences(past: Observations, targets: Targets) -> Floats:
    """The runs known last before each cutoff, oldest first, shape (m, LENGTH, 4); zeros where there are fewer.

    The last axis: log ratio, whether it is of the target's workload, log of its age in hours, and 1.
    """
    newest = np.searchsorted(past.known_ns, targets.cutoff_ns, side="right") - 1
    places = newest[:, None] + np.arange(1 - LENGTH, 1)[None, :]
    there = places >= 0
    if len(past) == 0:
        return np.zeros((len(newest), LENGTH, 4))
    rows = np.maximum(places, 0)
    age = np.log1p(np.maximum(targets.cutoff_ns[:, None] - past.known_ns[rows], 0) / HOUR_NS)
    same = past.workload[rows] == targets.workload[:, None]
    return np.stack([past.log_ratio[rows], same, age, np.ones_like(age)], axis=2) * there[:, :, None]


def query(targets: Targets) -> Floats:
    """Return the network's inputs for targets, shape (m, 7): the horizon and the hour."""
    return np.column_stack([np.log1p(targets.horizon_hours), harmonics(targets.target_ns)])


def _learned(read: Floats, queries: Floats, y: Floats, seed: int) -> dict[str, Floats]:
    import torch  # noqa: PLC0415 - an extra, and heavy

    torch.manual_seed(seed)
    gates, out = (
        torch.nn.GRU(read.shape[2], UNITS, batch_first=True),
        torch.nn.Linear(UNITS + queries.shape[1], len(LEVELS)),
    )
    parameters = [*gates.parameters(), *out.parameters()]
    optimizer = torch.optim.Adam(parameters, lr=LEARNING_RATE, weight_decay=1e-4)
    levels = torch.tensor(LEVELS)
    tensors = [torch.tensor(array, dtype=torch.float32) for array in (read, queries, y)]
    order = np.random.default_rng(seed)
    for _ in range(EPOCHS):
        for rows in np.array_split(order.permutation(len(y)), max(len(y) // BATCH, 1)):
            loss = _loss(gates, out, [tensor[rows] for tensor in tensors], levels)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
    named = {**gates.state_dict(), **{f"out.{name}": value for name, value in out.state_dict().items()}}
    return {name: value.numpy().astype(np.float64) for name, value in named.items()}


def _loss(gates: Any, out: Any, batch: list[Any], levels: Any) -> Any:
    import torch  # noqa: PLC0415 - an extra, and heavy

    read, queries, y = batch
    predicted = out(torch.cat([gates(read)[0][:, -1], queries], dim=1))
    shortfall = y[:, None] - predicted
    return torch.maximum(levels * shortfall, (levels - 1) * shortfall).mean()


def _gated(weights: dict[str, Floats], read: Floats, state: Floats) -> Floats:
    """One step of the unit, as torch.nn.GRU defines it."""
    inputs = read @ weights["weight_ih_l0"].T + weights["bias_ih_l0"]
    kept = state @ weights["weight_hh_l0"].T + weights["bias_hh_l0"]
    reset = _sigmoid(inputs[:, :UNITS] + kept[:, :UNITS])
    update = _sigmoid(inputs[:, UNITS : 2 * UNITS] + kept[:, UNITS : 2 * UNITS])
    fresh = np.tanh(inputs[:, 2 * UNITS :] + reset * kept[:, 2 * UNITS :])
    return (1 - update) * fresh + update * state


def _sigmoid(values: Floats) -> Floats:
    return 0.5 * (1 + np.tanh(values / 2))
