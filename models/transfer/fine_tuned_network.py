"""A small network trained on the sources and fine-tuned on the target's few runs."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Self

import numpy as np
import pandas as pd

from crosswind.data.schema.errors import UnavailableError
from crosswind.data.schema.prediction import Floats, Prediction
from crosswind.models.surrogate.log_normal import log_normal, robust_deviation
from crosswind.models.surrogate.surrogate import NotFittedError
from crosswind.models.transfer.coordinates import Coordinates
from crosswind.models.transfer.network_layers import Layers, Rows, encoded, first_layers
from crosswind.models.transfer.transfer import by_source, check_tables, described

TASK = "system"
CHECK_RATIO = 0.1  # of the sources' rows, held out for the width of the errors


@dataclass(frozen=True)
class Training:
    """Steps of Adam at a rate, and the penalty on changes of the layers."""

    steps: int
    rate: float
    hold: float = 0.0


@dataclass
class FineTunedNetwork:
    """A multi-layer perceptron with a learned embedding of each category and of the system.

    Training on the sources changes all weights; fine-tuning changes the target's embedding, the level and, penalised
    by their distance from before, the layers. torch trains; predicting needs numpy alone.
    """

    source_column: str | None = None
    seed: int = 0
    width: int = 32
    embedding: int = 4
    source_steps: int = 400
    target_steps: int = 150
    rate: float = 0.01
    hold: float = 1.0  # penalty on moving the layers, in units of one run's squared error
    _coordinates: Coordinates | None = field(default=None, init=False, repr=False)
    _learned: Layers | None = field(default=None, init=False, repr=False)  # from the sources
    _tuned: Layers | None = field(default=None, init=False, repr=False)
    _rows: Rows | None = field(default=None, init=False, repr=False)  # the target's, encoded
    _log_target: Floats | None = field(default=None, init=False, repr=False)
    _deviation: float = field(default=0.0, init=False, repr=False)  # of log seconds

    def fit(self, source: pd.DataFrame, source_seconds: Floats, target: pd.DataFrame, target_seconds: Floats) -> Self:
        """Trains, then fine-tunes. Raises: InvalidInputError, UnavailableError without torch."""
        check_tables(source, source_seconds, target, target_seconds)
        _torch()
        sources = by_source(source, source_seconds, self.source_column)
        table = pd.concat([rows for rows, _ in sources.values()], ignore_index=True)
        log_source = np.log(np.concatenate([seconds for _, seconds in sources.values()]))
        systems = np.repeat(np.arange(len(sources)), [len(rows) for rows, _ in sources.values()])
        self._coordinates = Coordinates.of(table)
        rows = encoded(self._coordinates, table, systems)
        start = first_layers(
            self._coordinates, len(sources), width=self.width, embedding=self.embedding, seed=self.seed
        )
        start = start.centred(float(log_source.mean()), max(float(log_source.std()), 1e-3))
        kept = np.random.default_rng(self.seed).random(len(log_source)) >= CHECK_RATIO
        trained = _trained(start, rows.only(kept), log_source[kept], Training(self.source_steps, self.rate))
        self._learned = trained.with_new_system()
        checked = trained(rows.only(~kept)) - log_source[~kept]
        self._deviation = robust_deviation(checked)
        return self._tune(target, target_seconds, len(sources))

    def predict(self, X: pd.DataFrame) -> Prediction:
        """Quantiles at LEVELS on the target. Raises: NotFittedError, InvalidInputError."""
        if self._tuned is None or self._coordinates is None or self._log_target is None:
            raise NotFittedError("FineTunedNetwork.predict came before fit")
        table = described(X, self.source_column)
        rows = encoded(self._coordinates, table, np.full(len(table), self._tuned.n_systems - 1))
        return log_normal(self._tuned(rows), np.full(len(table), self._width()))

    def held_out(self) -> Floats:
        """Medians of the target's runs, (k,), fine-tuned without each of them. Raises: NotFittedError."""
        if self._log_target is None:
            raise NotFittedError("FineTunedNetwork.held_out came before fit")
        if self._rows is None:
            return np.empty(0)
        answers = []
        for row in range(len(self._log_target)):
            others = np.arange(len(self._log_target)) != row
            layers = self._fine_tuned(self._rows.only(others), self._log_target[others])
            answers.append(float(np.exp(layers(self._rows.only(~others))[0])))
        return np.array(answers, dtype=np.float64)

    def _tune(self, target: pd.DataFrame, target_seconds: Floats, n_sources: int) -> Self:
        assert self._coordinates is not None  # noqa: S101  # set by fit
        table = described(target, self.source_column)
        if len(table):
            self._rows = encoded(self._coordinates, table, np.full(len(table), n_sources))
        else:
            self._rows = None
        self._log_target = np.log(np.asarray(target_seconds, dtype=np.float64))
        self._tuned = self._fine_tuned(self._rows, self._log_target)
        return self

    def _fine_tuned(self, rows: Rows | None, log_target: Floats) -> Layers:
        assert self._learned is not None  # noqa: S101  # set by fit
        if rows is None or len(log_target) == 0:
            return self._learned
        # The level first and in closed form: gradients would need thousands of steps for a factor of a hundred.
        shifted = self._learned.shifted(float(np.median(log_target - self._learned(rows))))
        return _trained(shifted, rows, log_target, Training(self.target_steps, self.rate, self.hold))

    def _width(self) -> float:
        """The deviation of log seconds: that of the sources and, falling with its runs, of the target's level."""
        assert self._log_target is not None  # noqa: S101  # set by fit
        return float(np.hypot(self._deviation, 1.0 / np.sqrt(1 + 4 * len(self._log_target))))


def _torch() -> Any:
    try:
        import torch  # noqa: PLC0415  # an optional extra, and slow to import
    except ImportError:
        raise UnavailableError(
            "the fine-tuned network needs torch, which is not installed: pip install 'crosswind[torch]'"
        ) from None
    return torch


def _trained(start: Layers, rows: Rows, log_seconds: Floats, training: Training) -> Layers:
    """Layers after steps of Adam on all rows at once; `hold` penalises their distance from the start."""
    torch = _torch()
    with torch.random.fork_rng(devices=[]):
        weights = {name: torch.tensor(values, requires_grad=True) for name, values in start.weights.items()}
        before = {name: tensor.detach().clone() for name, tensor in weights.items()}
        measured = torch.tensor(start.standardised(log_seconds))
        optimizer = torch.optim.Adam(list(weights.values()), lr=training.rate)
        for _ in range(training.steps):
            optimizer.zero_grad()
            errors = _answer(torch, weights, rows) - measured
            loss = torch.nn.functional.huber_loss(errors, torch.zeros_like(errors), reduction="mean")
            for name, tensor in weights.items():
                if training.hold and name.startswith("layer"):
                    loss = loss + training.hold * ((tensor - before[name]) ** 2).sum() / len(measured)
            loss.backward()
            optimizer.step()
    return start.replaced({name: tensor.detach().numpy().copy() for name, tensor in weights.items()})


def _answer(torch: Any, weights: Mapping[str, Any], rows: Rows) -> Any:
    """The network's standardised log seconds, as a tensor; the same arithmetic as `Layers.__call__`."""
    parts = [torch.tensor(rows.numbers)]
    parts += [weights[f"embedding_{place}"][torch.tensor(codes)] for place, codes in enumerate(rows.codes)]
    hidden = torch.tanh(torch.cat(parts, dim=1) @ weights["layer_1"] + weights["layer_1_shift"])
    hidden = torch.tanh(hidden @ weights["layer_2"] + weights["layer_2_shift"])
    return (hidden @ weights["layer_3"]).squeeze(1) + weights["level"]
