"""`from crosswind.huggingface import CrosswindCallback`; transformers is loaded when that is asked for."""

from typing import Any


def __getattr__(name: str) -> Any:
    """The callback. Raises: ImportError where transformers is not installed."""
    if name != "CrosswindCallback":
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from transformers import TrainerCallback  # noqa: PLC0415 - it is the user's

    from crosswind.ingest.probe.adapters.huggingface import TrainerHooks  # noqa: PLC0415

    globals()[name] = type(
        name, (TrainerHooks, TrainerCallback), {"__module__": __name__, "__doc__": TrainerHooks.__doc__}
    )
    return globals()[name]
