"""The arithmetic and the weights of the network, in numpy."""

from collections.abc import Mapping
from dataclasses import dataclass, replace

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from crosswind.data.schema.prediction import Floats
from crosswind.models.transfer.coordinates import UNSEEN, Coordinates

Codes = NDArray[np.int64]


@dataclass(frozen=True)
class Rows:
    """Rows of a table as a network takes them."""

    numbers: Floats  # (n_rows, 2 * n_numbers): standardised, missing 0, then 1 where missing
    codes: tuple[Codes, ...]  # of each category, then of the system, each (n_rows,); place 0 is "unseen or missing"

    def only(self, kept: NDArray[np.bool_]) -> "Rows":
        """The rows where `kept` is true."""
        return Rows(self.numbers[kept], tuple(codes[kept] for codes in self.codes))


@dataclass(frozen=True)
class Layers:
    """Two hidden layers of tanh over numbers and embeddings; predicts log seconds."""

    weights: Mapping[str, Floats]
    centre: float  # log seconds
    spread: float  # log seconds

    def __call__(self, rows: Rows) -> Floats:
        """Log seconds, shape (n_rows,)."""
        embedded = [self.weights[f"embedding_{place}"][codes] for place, codes in enumerate(rows.codes)]
        hidden = np.concatenate([rows.numbers, *embedded], axis=1)
        for layer in ("layer_1", "layer_2"):
            hidden = np.tanh(hidden @ self.weights[layer] + self.weights[f"{layer}_shift"])
        answer = (hidden @ self.weights["layer_3"])[:, 0] + self.weights["level"]
        return np.asarray(self.centre + self.spread * answer, dtype=np.float64)

    @property
    def n_systems(self) -> int:
        """The number of systems that have an embedding."""
        return len(self.weights[self._system])

    @property
    def _system(self) -> str:
        return f"embedding_{sum(name.startswith('embedding_') for name in self.weights) - 1}"

    def standardised(self, log_seconds: Floats) -> Floats:
        """Return log seconds in the units of the weights."""
        return (log_seconds - self.centre) / self.spread

    def centred(self, centre: float, spread: float) -> "Layers":
        """The same weights for log seconds of this centre and spread."""
        return replace(self, centre=centre, spread=spread)

    def shifted(self, log_seconds: float) -> "Layers":
        """Shift all predictions by log seconds."""
        return replace(self, weights={**self.weights, "level": self.weights["level"] + log_seconds / self.spread})

    def replaced(self, weights: Mapping[str, Floats]) -> "Layers":
        """Replace the weights."""
        return replace(self, weights=dict(weights))

    def with_new_system(self) -> "Layers":
        """Add a system with the mean embedding of the others."""
        embeddings = self.weights[self._system]
        return self.replaced({**self.weights, self._system: np.vstack([embeddings, embeddings.mean(axis=0)])})


def encoded(coordinates: Coordinates, table: pd.DataFrame, systems: Codes) -> Rows:
    """Encode rows of a table and their systems (n_rows,). Raises: InvalidInputError on other columns."""
    points = coordinates.points(table)
    kinds = np.array(coordinates.categorical, dtype=bool)
    numbers = points[:, ~kinds]
    missing = np.isnan(numbers)
    categories = np.nan_to_num(points[:, kinds], nan=UNSEEN).astype(np.int64) - int(UNSEEN)
    codes = (*(categories[:, place] for place in range(categories.shape[1])), systems.astype(np.int64))
    return Rows(np.concatenate([np.where(missing, 0.0, numbers), missing.astype(np.float64)], axis=1), codes)


def first_layers(coordinates: Coordinates, n_systems: int, *, width: int, embedding: int, seed: int) -> Layers:
    """Weights to start from: small embeddings, layers scaled by their inputs (Glorot and Bengio 2010)."""
    rng = np.random.default_rng(seed)
    sizes = [1 + len(categories) for categories in coordinates.columns.categories.values() if categories is not None]
    n_numbers = sum(not kind for kind in coordinates.categorical)
    tables = [0.1 * rng.standard_normal((size, embedding)) for size in [*sizes, n_systems]]
    n_inputs = 2 * n_numbers + embedding * len(tables)
    weights = {f"embedding_{place}": values for place, values in enumerate(tables)}
    weights |= {
        "layer_1": rng.standard_normal((n_inputs, width)) / np.sqrt(n_inputs),
        "layer_1_shift": np.zeros(width),
        "layer_2": rng.standard_normal((width, width)) / np.sqrt(width),
        "layer_2_shift": np.zeros(width),
        "layer_3": rng.standard_normal((width, 1)) / np.sqrt(width),
        "level": np.zeros(1),
    }
    return Layers(weights, 0.0, 1.0)
