"""A further promise of surrogates beyond `Surrogate`, so that cross-validation and medians are cheap."""

from typing import Protocol, runtime_checkable

import pandas as pd

from crosswind.data.schema.prediction import Floats
from crosswind.models.surrogate.validation import Mask


@runtime_checkable
class KnowsItsRows(Protocol):
    """A surrogate that can tell, once fitted, what it would have said knowing fewer of its rows, without a new fit."""

    def answers(self, training: Mask, asked: Mask) -> Floats:
        """Medians of the rows asked about by those of `training`, shape (asked.sum(),); masks over the fitted rows."""
        ...

    def medians(self, X: pd.DataFrame) -> Floats:
        """Of rows to come, shape (n_rows,), in the same sense. Raises: NotFittedError, InvalidInputError."""
        ...
