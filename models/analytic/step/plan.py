"""The plan by which a workload is spread over ranks."""

from dataclasses import dataclass
from typing import Literal

from crosswind.data.schema.errors import InvalidInputError
from crosswind.models.analytic.checks import require_count, require_positive

Schedule = Literal["gpipe", "1f1b", "interleaved"]
Offload = Literal["none", "optimizer", "activations"]
MEBIBYTE = 2**20


@dataclass(frozen=True, kw_only=True)
class Plan:
    """Degrees of parallelism and what goes with them; the names are those that Megatron-LM and DeepSpeed use.

    `ranks` are workers; the servers of a parameter server come on top. Raises: InvalidInputError.
    """

    ranks: int
    strategy: str = "hybrid"  # a name in strategies.STRATEGIES
    data: int = 1
    tensor: int = 1
    pipeline: int = 1
    micro_batch: int = 1  # samples of one rank at a time
    micro_batches: int = 1  # of one rank in a step
    ranks_a_node: int = 8
    zero_stage: int = 0
    schedule: Schedule = "1f1b"
    interleave: int = 1  # model chunks a stage
    recompute: bool = False
    sequence_parallel: bool = False
    offload: Offload = "none"
    bucket_bytes: float = 25 * MEBIBYTE  # as PyTorch's DistributedDataParallel
    servers: int = 0
    asynchronous: bool = False

    def __post_init__(self) -> None:
        require_count(
            ranks=self.ranks,
            data=self.data,
            tensor=self.tensor,
            pipeline=self.pipeline,
            micro_batch=self.micro_batch,
            micro_batches=self.micro_batches,
            ranks_a_node=self.ranks_a_node,
            interleave=self.interleave,
        )
        require_count(least=0, zero_stage=self.zero_stage, servers=self.servers)
        require_positive(bucket_bytes=self.bucket_bytes)
        self._check_degrees()
        self._check_schedule()

    @property
    def global_batch(self) -> int:
        """Samples of a step over all ranks."""
        return self.micro_batch * self.micro_batches * self.data

    def _check_degrees(self) -> None:
        if self.data * self.tensor * self.pipeline != self.ranks:
            raise InvalidInputError(
                f"data {self.data} x tensor {self.tensor} x pipeline {self.pipeline} = "
                f"{self.data * self.tensor * self.pipeline}, expected ranks = {self.ranks}"
            )
        if self.zero_stage > 3:
            raise InvalidInputError(f"zero_stage is {self.zero_stage}, expected 0 to 3")
        if self.offload not in ("none", "optimizer", "activations"):
            raise InvalidInputError(f"offload is {self.offload!r}, expected none, optimizer or activations")

    def _check_schedule(self) -> None:
        if self.schedule not in ("gpipe", "1f1b", "interleaved"):
            raise InvalidInputError(f"schedule is {self.schedule!r}, expected gpipe, 1f1b or interleaved")
        if (self.interleave > 1) != (self.schedule == "interleaved"):
            raise InvalidInputError(
                f"interleave is {self.interleave} with schedule {self.schedule}, "
                "expected more than 1 with interleaved, else 1"
            )
        if self.schedule == "interleaved" and self.micro_batches % self.pipeline:
            raise InvalidInputError(
                f"micro_batches is {self.micro_batches} with schedule interleaved, "
                f"expected a multiple of pipeline = {self.pipeline}"
            )
