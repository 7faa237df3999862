"""On which scale an outcome is modelled: where it keeps one sign, effects and noise are relative."""

from dataclasses import dataclass
from typing import Self

import numpy as np

from crosswind.data.schema.prediction import Floats


@dataclass(frozen=True)
class Scale:
    """A rising map of values: the logarithm of positive ones, its mirror image for negative ones, else none."""

    sign: int

    @classmethod
    def of(cls, values: Floats) -> Self:
        """The scale for these values: sign 1 where all are positive, -1 where all are negative, else 0."""
        return cls(int(np.all(values > 0)) - int(np.all(values < 0)))

    def there(self, values: Floats) -> Floats:
        """Values on the scale."""
        return np.asarray(self.sign * np.log(self.sign * values) if self.sign else values, np.float64)

    def back(self, values: Floats) -> Floats:
        """The values that lie there on the scale."""
        return np.asarray(self.sign * np.exp(self.sign * values) if self.sign else values, np.float64)
