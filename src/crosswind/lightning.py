"""`from crosswind.lightning import CrosswindCallback`; lightning is loaded when that is asked for."""

from crosswind.ingest.probe.callbacks.hooks import callback_of
from crosswind.ingest.probe.callbacks.lightning import LightningHooks

__getattr__ = callback_of(__name__, LightningHooks, extends="lightning.pytorch.callbacks.Callback")
