"""The quality of this node's clock, as the kernel has it from chrony or ntpd."""

import ctypes
from dataclasses import dataclass

STA_UNSYNC, STA_NANO = 0x0040, 0x2000  # include/uapi/linux/timex.h
TIME_ERROR = 5


class _Timeval(ctypes.Structure):
    _fields_ = (("seconds", ctypes.c_long), ("fraction", ctypes.c_long))


class _Timex(ctypes.Structure):
    """struct timex of adjtimex(2)."""

    _fields_ = (
        ("modes", ctypes.c_uint),
        ("offset", ctypes.c_long),
        ("freq", ctypes.c_long),
        ("maxerror", ctypes.c_long),
        ("esterror", ctypes.c_long),
        ("status", ctypes.c_int),
        ("constant", ctypes.c_long),
        ("precision", ctypes.c_long),
        ("tolerance", ctypes.c_long),
        ("time", _Timeval),
        ("rest", ctypes.c_long * 32),  # fields that we do not read, with room for longer structures
    )


@dataclass(frozen=True)
class ClockState:
    """The offset that the kernel still slews away, the largest error that it admits, and whether it is synchronised."""

    offset_seconds: float
    max_error_seconds: float
    is_synchronized: bool


class Clock:
    """Reads the state of the kernel's clock, which needs no privilege.

    Source: adjtimex(2); with modes 0 it only reads.
    """

    def __init__(self) -> None:
        self._library = ctypes.CDLL(None, use_errno=True)
        self._timex = _Timex()

    def state(self) -> ClockState | None:
        """Return the state of the clock; None if the kernel refuses, as in some sandboxes."""
        self._timex.modes = 0
        answer = self._library.adjtimex(ctypes.byref(self._timex))
        if answer < 0:
            return None
        unit = 1e-9 if self._timex.status & STA_NANO else 1e-6
        is_synchronized = answer != TIME_ERROR and not self._timex.status & STA_UNSYNC
        return ClockState(self._timex.offset * unit, self._timex.maxerror * 1e-6, is_synchronized)
