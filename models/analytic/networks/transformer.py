"""Sizes and work of a transformer."""

from dataclasses import dataclass

from crosswind.models.analytic.checks import require_count
from crosswind.models.analytic.networks.workload import TRAFFIC_OVER_STORED, Workload

WORD_BYTES = 2  # 16-bit activations and gradients
KERNELS_A_LAYER = 18  # six matrix products (query-key-value, scores, values, output, two of the MLP), three passes each


@dataclass(frozen=True, kw_only=True)
class Transformer:
    """A decoder or encoder of equal layers whose MLP is four times as wide. Raises: InvalidInputError."""

    layers: int
    hidden: int
    heads: int
    sequence: int
    vocabulary: int

    def __post_init__(self) -> None:
        require_count(
            layers=self.layers,
            hidden=self.hidden,
            heads=self.heads,
            sequence=self.sequence,
            vocabulary=self.vocabulary,
        )

    def flops(self, batch: int, *, recompute: bool = False) -> float:
        """72 B s l h^2 (1 + s/(6h) + V/(12 l h)) of a step; with full recomputation 96.

        The vocabulary's part, 6 B s h V, is never computed again.
        Source: Narayanan et al. 2021, "Efficient large-scale language model training on GPU clusters", appendix.
        """
        return batch * (self.layers * self._layer_flops(recompute=recompute) + self._head_flops())

    @property
    def parameters(self) -> float:
        """12 l h^2 (1 + 13/(12 h)) + (V + s) h. Source: Narayanan et al. 2021, equation 2."""
        return self.layers * self._layer_parameters() + (self.vocabulary + self.sequence) * self.hidden

    def layer_activation_bytes(self, batch: int, *, tensor: int = 1, sequence_parallel: bool = False) -> float:
        """s b h (10 + 24/t + 5 a s/(h t)) that a layer keeps; with sequence parallelism all of it divided by t.

        Source: Korthikanti et al. 2022, "Reducing activation recomputation in large transformer models", table 2.
        """
        replicated = self._replicated_bytes() / (tensor if sequence_parallel else 1)
        return batch * (replicated + self._sharded_bytes() / tensor)

    def gradient_bytes(self, *, word_bytes: int = WORD_BYTES) -> float:
        """Return the bytes that data parallelism reduces in a step."""
        return self.parameters * word_bytes

    def workload(self, *, recompute: bool = False) -> Workload:
        """Return the network's workload for the strategies."""
        return Workload(
            layers=self.layers,
            layer_flops=self._layer_flops(recompute=recompute),
            layer_parameters=self._layer_parameters(),
            layer_sharded_bytes=self._sharded_bytes(),
            layer_replicated_bytes=self._replicated_bytes(),
            boundary_bytes=float(WORD_BYTES * self.sequence * self.hidden),
            tensor_all_reduces=6 if recompute else 4,
            kernels=KERNELS_A_LAYER,
            head_flops=self._head_flops(),
            head_bytes=TRAFFIC_OVER_STORED * 2 * WORD_BYTES * self.sequence * self.vocabulary,  # 32-bit logits
            head_parameters=float((self.vocabulary + self.sequence) * self.hidden),
        )

    def _layer_flops(self, *, recompute: bool) -> float:
        passes = 96 if recompute else 72
        return passes * self.sequence * self.hidden**2 * (1 + self.sequence / (6 * self.hidden))

    def _head_flops(self) -> float:
        return 6 * self.sequence * self.hidden * self.vocabulary

    def _layer_parameters(self) -> float:
        return 12 * self.hidden**2 * (1 + 13 / (12 * self.hidden))

    def _sharded_bytes(self) -> float:
        return 24 * self.sequence * self.hidden + 5 * self.heads * self.sequence**2

    def _replicated_bytes(self) -> float:
        return 10 * self.sequence * self.hidden
