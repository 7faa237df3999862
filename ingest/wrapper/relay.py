"""The process that passes a program's output on byte for byte, with a copy for the search for step lines.

It outlives the wrapper when a child of the program keeps the output open, as that child outlives the program.
Nothing here waits for the copy's reader: blocks not taken in time are left out, and the copy notes the gap.
"""

import array
import fcntl
import os
import signal
import struct
import sys
import termios
import threading
import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from select import POLLIN, POLLOUT, poll

BLOCK = 65536
HEADER = struct.Struct("<qII")  # time, source, number of bytes; 0 bytes: some were left out
LAST_WORDS_MS = 1000


class Copy:
    """The pipe to the reader of the copy, until that one is gone."""

    def __init__(self, fd: int) -> None:
        self._fd = fd
        self._lock = threading.Lock()
        self._rest = b""
        self._has_left_out: set[int] = set()
        self._is_open = True
        os.set_blocking(fd, False)

    def take(self, source: int, ts_ns: int, content: bytes) -> None:
        """Copy a block, or note a gap."""
        with self._lock:
            self._push()
            if self._rest:
                self._has_left_out.add(source)
            elif self._is_open:
                gap = HEADER.pack(ts_ns, source, 0) if source in self._has_left_out else b""
                self._has_left_out.discard(source)
                self._rest = gap + HEADER.pack(ts_ns, source, len(content)) + content
                self._push()

    def close(self) -> None:
        """End the copy, after a moment for blocks on their way."""
        with self._lock:
            while self._rest and _is_ready(self._fd, POLLOUT, LAST_WORDS_MS):
                self._push()
            self._rest = b""
            if self._is_open:
                self._is_open = False
                os.close(self._fd)

    def _push(self) -> None:
        try:
            while self._rest:
                self._rest = self._rest[os.write(self._fd, self._rest) :]
        except BlockingIOError:
            return
        except OSError:  # the reader is gone
            self._rest = b""
            self._is_open = False


@dataclass
class Stream:
    """One output stream of the program."""

    number: int
    source: int
    target: int
    copy: Copy
    taken: int = 0
    given: int = 0
    is_over: bool = False
    changed: threading.Condition = field(default_factory=threading.Condition)

    def pump(self) -> None:
        """Pass everything on until the program has closed its end, or our reader is gone."""
        while content := self._read():
            if not self._write(content):
                break
        os.close(self.source)  # from now on the program notices, as without us, that nobody reads
        os.close(self.target)
        with self.changed:
            self.is_over = True
            self.changed.notify_all()

    def drain(self) -> None:
        """Return when everything that is on its way now has been passed on."""
        with self.changed:
            waiting = 0 if self.is_over else _readable_bytes(self.source)
            until = self.taken + waiting
            self.changed.wait_for(lambda: self.is_over or self.given >= until)

    def _read(self) -> bytes:
        _is_ready(self.source, POLLIN, None)
        with self.changed:
            try:
                content = os.read(self.source, BLOCK)
            except OSError:  # EIO: the last one who had the terminal open has closed it
                return b""
            self.taken += len(content)
            return content

    def _write(self, content: bytes) -> bool:
        ts_ns = time.time_ns()
        try:
            _write_all(self.target, content)
        except OSError:
            return False
        with self.changed:
            self.given += len(content)
            self.changed.notify_all()
        self.copy.take(self.number, ts_ns, content)
        return True


def relay(over: int, drained: int, copy: int, ways: Sequence[tuple[int, int]]) -> None:
    """Pass bytes on from the first end of every way to its second.

    Writes a byte to `drained` when it begins, and closes it once `over` is closed and everything is through.
    """
    to_copy = Copy(copy)
    streams = [Stream(number, source, target, to_copy) for number, (source, target) in enumerate(ways)]
    signal.signal(signal.SIGWINCH, lambda *_: _copy_sizes(ways))
    threads = [threading.Thread(target=stream.pump) for stream in streams]
    for thread in threads:
        thread.start()
    os.write(drained, b"!")
    while os.read(over, 1):
        pass
    for stream in streams:
        stream.drain()
    os.close(drained)
    to_copy.close()
    for thread in threads:
        thread.join()


def _copy_sizes(ways: Sequence[tuple[int, int]]) -> None:
    for source, target in ways:
        copy_size(target, source)


def copy_size(shown: int, target: int) -> None:
    """Give a terminal the size of another, if both are terminals."""
    try:
        termios.tcsetwinsize(target, termios.tcgetwinsize(shown))
    except (OSError, termios.error):
        return


def _readable_bytes(fd: int) -> int:
    count = array.array("i", [0])
    try:
        fcntl.ioctl(fd, termios.FIONREAD, count)
    except OSError:
        return 0
    return count[0]


def _write_all(fd: int, content: bytes) -> None:
    while content:
        try:
            content = content[os.write(fd, content) :]
        except BlockingIOError:  # another process made it non-blocking; we wait for its reader
            _is_ready(fd, POLLOUT, None)


def _is_ready(fd: int, event: int, timeout_ms: int | None) -> bool:
    watched = poll()
    watched.register(fd, event)
    return bool(watched.poll(timeout_ms))


def main() -> None:
    """Run the process: the descriptors are its arguments."""
    over, drained, copy, *ends = (int(word) for word in sys.argv[1:])
    relay(over, drained, copy, list(zip(ends[::2], ends[1::2], strict=True)))


if __name__ == "__main__":
    main()
