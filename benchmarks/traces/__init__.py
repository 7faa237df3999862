"""Traces of several ranks from files to breakdown, overlap and POP, beside HolisticTraceAnalysis; and other readers.

`python -m benchmarks traces`. Each piece of work is a process of its own; the peer's runs in `.venv-peers`
(`make peers`) and is left out where that is absent. Source of the traces: ../shared/data, else generated.
"""

from benchmarks.traces.compare import main

__all__ = ["main"]
