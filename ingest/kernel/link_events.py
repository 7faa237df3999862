"""The kernel's announcements that a network interface came, went or changed."""

import socket
import weakref
from collections.abc import Callable
from contextlib import suppress
from typing import Final

from crosswind.ingest.kernel.netlink import close_all

RTMGRP_LINK: Final = 1
MOST: Final = 1000  # announcements taken at once; where there are more, a new socket begins with none
ENOUGH_BYTES: Final = 64  # of an announcement: its content does not matter

Connect = Callable[[], socket.socket]


def link_socket() -> socket.socket:
    """Return a socket that receives announcements of every interface of this network namespace."""
    opened = socket.socket(socket.AF_NETLINK, socket.SOCK_RAW | socket.SOCK_CLOEXEC, socket.NETLINK_ROUTE)
    try:
        opened.bind((0, RTMGRP_LINK))
    except OSError:
        opened.close()
        raise
    return opened


class LinkEvents:
    """Tests by one system call whether any link may have changed since the last call. Not for several threads.

    The kernel announces a link that comes or goes at once, and a carrier that flaps again and again once a second.
    Source: rtnetlink(7); linkwatch in https://docs.kernel.org/networking/operstates.html
    """

    def __init__(self, connect: Connect = link_socket) -> None:
        self._connect = connect
        self._open: list[socket.socket] = []  # one, or none
        weakref.finalize(self, close_all, self._open)

    def happened(self) -> bool:
        """Return whether a change was announced, or may have been: at first, and after too many announcements."""
        if not self._open:
            with suppress(OSError):
                self._open.append(self._connect())
            return True
        try:
            for taken in range(MOST):
                if not self._taken():
                    return taken > 0
        except OSError:  # such as ENOBUFS: some announcements were lost
            pass
        close_all(self._open)
        return True

    def _taken(self) -> bool:
        """Take one announcement, if there is one."""
        try:
            self._open[0].recv(ENOUGH_BYTES, socket.MSG_DONTWAIT)
        except BlockingIOError:
            return False
        return True
