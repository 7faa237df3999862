"""A stand-in for a function made by a framework, which has attributes and methods of its own."""

from collections.abc import Callable
from functools import update_wrapper
from types import MethodType
from typing import Any


class WatchedFunction:
    """A function with rerouted calls; everything else, such as `lower` of `jax.jit`, is the function's own."""

    def __init__(self, function: Any, call: Callable[..., Any]) -> None:
        update_wrapper(self, function)
        self._watched = function
        self._reported = call

    def __call__(self, *arguments: Any, **named: Any) -> Any:
        """Call the function through the watch."""
        return self._reported(*arguments, **named)

    def __get__(self, instance: object, owner: type | None = None) -> Any:
        """Return the function as a method of the instance."""
        return self if instance is None else MethodType(self, instance)

    def __getattr__(self, name: str) -> Any:
        return getattr(object.__getattribute__(self, "_watched"), name)
