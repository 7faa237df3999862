"""`from crosswind.keras import CrosswindCallback`; keras is loaded when that is asked for."""

from crosswind.ingest.probe.callbacks.hooks import callback_of
from crosswind.ingest.probe.callbacks.keras import KerasHooks

__getattr__ = callback_of(__name__, KerasHooks, extends="keras.callbacks.Callback")
