"""The stand-in for a function that a framework made: such a function has more to it than calls."""

from collections.abc import Callable
from functools import update_wrapper
from types import MethodType
from typing import Any


class WatchedFunction:
    """A function of which calls go another way; all else, such as `lower` of `jax.jit`, is the function's own."""

    def __init__(self, function: Any, call: Callable[..., Any]) -> None:
        update_wrapper(self, function)
        self._watched = function
        self._reported = call

    def __call__(self, *arguments: Any, **named: Any) -> Any:
        """The function, called the other way."""
        return self._reported(*arguments, **named)

    def __get__(self, instance: object, owner: type | None = None) -> Any:
        """The function as a method of the instance."""
        return self if instance is None else MethodType(self, instance)

    def __getattr__(self, name: str) -> Any:
        return getattr(object.__getattribute__(self, "_watched"), name)
