"""`from crosswind.keras import CrosswindCallback`; keras is loaded when that is asked for."""

from typing import Any


def __getattr__(name: str) -> Any:
    """The callback. Raises: ImportError where keras is not installed."""
    if name != "CrosswindCallback":
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from keras.callbacks import Callback  # noqa: PLC0415 - it is the user's

    from crosswind.ingest.probe.adapters.keras import KerasHooks  # noqa: PLC0415

    globals()[name] = type(name, (KerasHooks, Callback), {"__module__": __name__, "__doc__": KerasHooks.__doc__})
    return globals()[name]
