"""The demands of a network on devices, whatever the plan."""

from dataclasses import dataclass

from crosswind.models.analytic.checks import require_count, require_not_negative, require_positive

BACKWARD_OVER_FORWARD = 2.0  # gradients of inputs and of weights, each as much work as the forward pass
TRAFFIC_OVER_STORED = 3.0  # an activation is written, read by the next operator, read again by the backward pass


@dataclass(frozen=True, kw_only=True)
class Workload:
    """A network of equal layers, and what one sample costs in each: forward and backward, in 16-bit words.

    `head` is the part after the last layer (a loss over a vocabulary, a classifier). Raises: InvalidInputError.
    """

    layers: int
    layer_flops: float  # of a sample, forward and backward
    layer_parameters: float
    layer_sharded_bytes: float  # activations of a sample kept for the backward pass, split by tensor parallelism
    layer_replicated_bytes: float = 0.0  # the same, on every tensor rank (split by sequence parallelism)
    boundary_bytes: float = 0.0  # of a sample, handed from layer to layer
    tensor_all_reduces: int = 4  # of `boundary_bytes`, a layer and step; 6 with recomputation
    kernels: int = 1  # matrix products or convolutions that a layer's flops fall into, forward and backward
    head_flops: float = 0.0
    head_bytes: float = 0.0
    head_parameters: float = 0.0  # embeddings included

    def __post_init__(self) -> None:
        require_count(layers=self.layers, kernels=self.kernels)
        require_positive(layer_flops=self.layer_flops, layer_parameters=self.layer_parameters)
        require_not_negative(
            layer_sharded_bytes=self.layer_sharded_bytes,
            layer_replicated_bytes=self.layer_replicated_bytes,
            boundary_bytes=self.boundary_bytes,
            tensor_all_reduces=self.tensor_all_reduces,
            head_flops=self.head_flops,
            head_bytes=self.head_bytes,
            head_parameters=self.head_parameters,
        )

    @property
    def parameters(self) -> float:
        """Weights of the whole network."""
        return self.layers * self.layer_parameters + self.head_parameters

    @property
    def flops(self) -> float:
        """Floating-point operations of one sample, forward and backward."""
        return self.layers * self.layer_flops + self.head_flops
