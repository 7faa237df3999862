"""Orderly end on a signal: a lab that just died would leave its hosts in the kernel."""

import signal
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType
from typing import NoReturn

TOLD_TO_END = (signal.SIGTERM, signal.SIGHUP)


@contextmanager
def leaves_in_order() -> Iterator[None]:
    """Within the context, end by an exception on SIGTERM or SIGHUP, with 128 + its number as exit code."""
    heard = [number for number in TOLD_TO_END if signal.getsignal(number) is not signal.SIG_IGN]  # nohup(1)
    before = {number: signal.signal(number, _leave) for number in heard}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


def _leave(number: int, _frame: FrameType | None) -> NoReturn:
    for signum in TOLD_TO_END:
        signal.signal(signum, signal.SIG_IGN)  # the next one would interrupt the clearing up
    raise SystemExit(128 + number)
