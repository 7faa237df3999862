"""The common parts of the callbacks for all frameworks."""

import functools
import logging
from collections.abc import Callable
from importlib import import_module
from typing import Any, Concatenate, ParamSpec, TypeVar

from crosswind.ingest.probe.callbacks.loop import CallbackLoop
from crosswind.ingest.probe.run import RunProbe

logger = logging.getLogger("crosswind")
Arguments = ParamSpec("Arguments")


class Hooks:
    """A callback that records the training; options are those of `crosswind.run`.

    Args:
        run: a run that is open already; without it one is opened for every training.
    """

    def __init__(self, run: RunProbe | None = None, **options: Any) -> None:
        super().__init__()  # the framework's
        self._loop = CallbackLoop(run, **options)


SomeHooks = TypeVar("SomeHooks", bound=Hooks)


def hook(
    note: Callable[Concatenate[SomeHooks, Arguments], None],
) -> Callable[Concatenate[SomeHooks, Arguments], None]:
    """Wrap a method: it raises nothing into the training; after an error the rest of that training is not recorded."""

    @functools.wraps(note)
    def noted(hooks: SomeHooks, /, *arguments: Arguments.args, **named: Arguments.kwargs) -> None:
        if hooks._loop.is_off:
            return
        try:
            note(hooks, *arguments, **named)
        except Exception as error:  # noqa: BLE001 - no error of ours may stop the user's training
            hooks._loop.switch_off()
            logger.warning("crosswind stops watching this training: %s", error)

    return noted


def callback_of(module: str, hooks: type[Hooks], *, extends: str) -> Callable[[str], Any]:
    """Return a module's `__getattr__`, which makes `CrosswindCallback` of these hooks and the framework's class.

    It raises AttributeError for any other name, ImportError where the framework is not installed.
    """

    @functools.cache
    def attribute(name: str) -> Any:
        if name != "CrosswindCallback":
            raise AttributeError(f"module {module!r} has no attribute {name!r}")
        framework, _, theirs = extends.rpartition(".")
        bases = (hooks, getattr(import_module(framework), theirs))
        return type(name, bases, {"__module__": module, "__doc__": Hooks.__doc__})

    return attribute
