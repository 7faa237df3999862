"""`from crosswind.huggingface import CrosswindCallback`; transformers is loaded when that is asked for."""

from crosswind.ingest.probe.callbacks.hooks import callback_of
from crosswind.ingest.probe.callbacks.huggingface import TrainerHooks

__getattr__ = callback_of(__name__, TrainerHooks, extends="transformers.TrainerCallback")
