"""Floating point operations and bytes of one step, counted by PyTorch as its operators run.

Operations are those of matrix products, convolutions and attention, forward and backward, 2 a multiply-add. Bytes are
those of the tensors that operators read and write, as if no cache held any of them: an upper bound of memory traffic,
and the roofline's usual denominator. Source: torch.utils.flop_counter; Williams, Waterman, Patterson, "Roofline",
CACM 2009.
"""

from contextlib import ExitStack
from typing import Any

from crosswind.data.schema.errors import UnavailableError

COUNTED_STEP = 2  # the third: without the set-up in the first ones, and slower than the steps compared


class StepWork:
    """Counts between `begin` and `end`, on the thread that calls both."""

    def __init__(self) -> None:
        self._stack = ExitStack()
        self._flops: Any = None
        self._bytes: Any = None

    def begin(self) -> None:
        """Start counting. Raises: UnavailableError without PyTorch."""
        try:
            from torch.utils.flop_counter import FlopCounterMode  # noqa: PLC0415 - torch is the user's
        except ImportError as error:
            raise UnavailableError(f"operations of a step are counted by PyTorch: {error}") from error
        flops, counted = FlopCounterMode(display=False), _byte_counter()
        with ExitStack() as entering:
            self._bytes = entering.enter_context(counted)
            self._flops = entering.enter_context(flops)
            self._stack = entering.pop_all()

    def end(self) -> dict[str, int]:
        """Return the counts, `step_flops` and `step_bytes`; nothing when it was not begun."""
        if self._flops is None:
            return {}
        self._stack.close()
        counted = {"step_flops": int(self._flops.get_total_flops()), "step_bytes": int(self._bytes.total)}
        self._flops = None
        return counted


def _byte_counter() -> Any:
    from torch import Tensor  # noqa: PLC0415 - torch is the user's
    from torch.utils._python_dispatch import TorchDispatchMode  # noqa: PLC0415
    from torch.utils._pytree import tree_leaves  # noqa: PLC0415

    class ByteCounter(TorchDispatchMode):  # type: ignore[misc]  # torch is not followed by the type checker
        """Sums the bytes of operators' inputs and outputs; views move none."""

        total = 0

        def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
            result = func(*args, **(kwargs or {}))
            if not getattr(func, "is_view", False):
                tensors = [tensor for tensor in tree_leaves((args, kwargs, result)) if isinstance(tensor, Tensor)]
                self.total += sum(tensor.numel() * tensor.element_size() for tensor in tensors)
            return result

    return ByteCounter()
