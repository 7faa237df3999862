"""`from crosswind.lightning import CrosswindCallback`; lightning is loaded when that is asked for."""

from typing import Any


def __getattr__(name: str) -> Any:
    """The callback. Raises: ImportError where lightning is not installed."""
    if name != "CrosswindCallback":
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from lightning.pytorch.callbacks import Callback  # noqa: PLC0415 - it is the user's

    from crosswind.ingest.probe.adapters.lightning import LightningHooks  # noqa: PLC0415

    globals()[name] = type(
        name, (LightningHooks, Callback), {"__module__": __name__, "__doc__": LightningHooks.__doc__}
    )
    return globals()[name]
