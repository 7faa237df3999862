import io
import os
import pty
import subprocess
import sys
import time

import pytest

from crosswind.cli.progress import BYTES, CLEAR, Progress, progress_line, stopwatch

WORK = """
import sys, time
from crosswind.cli.progress import Progress
with Progress("reading", 10, unit="rows") as progress:
    for _ in range(int(sys.argv[1])):
        time.sleep(0.25)
        progress.advance()
print("done")
"""


@pytest.mark.parametrize(
    ("amounts", "elapsed", "note", "line"),
    [
        ((0, None, ""), 3.2, "", "reading  3 s"),
        ((12, None, "rows"), 3.2, "", "reading  12 rows  3 s"),
        ((25e6, 100e6, BYTES), 10, "", f"{'█' * 6}{'░' * 18}  reading  25.0 MB of 100 MB  10 s, 30 s left"),
        ((100, 100, ""), 10, "7 rows", f"{'█' * 24}  reading  100 of 100  7 rows  10 s"),
        ((150, 100, ""), 10, "", f"{'█' * 24}  reading  100 of 100  10 s"),
        ((1, 1000, ""), 1, "", f"{'░' * 24}  reading  1 of 1\u202f000  1 s, 16 min 39 s left"),
        ((5, 40, "s"), 5, "", f"{'█' * 3}{'░' * 21}  reading  5 s of 40 s  5 s, 35 s left"),
    ],
)
def test_a_line_says_how_far_the_work_is_and_when_it_is_over(
    amounts: tuple[float, float | None, str], elapsed: float, note: str, line: str
) -> None:
    assert progress_line("reading", amounts, elapsed, note=note) == line


def seen_on_a_terminal(steps: int) -> str:
    """Return what work of so many quarters of a second shows on the terminal that is its standard error."""
    ours, theirs = pty.openpty()
    command = [sys.executable, "-c", WORK, str(steps)]
    done = subprocess.run(command, stdout=subprocess.PIPE, stderr=theirs, text=True, check=True)
    assert done.stdout == "done\n"
    os.close(theirs)
    shown = b""
    try:
        while block := os.read(ours, 65536):
            shown += block
    except OSError:  # the end, on Linux
        pass
    os.close(ours)
    return shown.decode()


def test_a_terminal_shows_long_work_and_is_clean_after_it() -> None:
    shown = seen_on_a_terminal(11)
    assert "reading  10 rows of 10 rows" in shown or "reading  9 rows of 10 rows" in shown
    assert shown.endswith(CLEAR)
    assert "\n" not in shown


def test_short_work_shows_nothing() -> None:
    assert seen_on_a_terminal(1) == ""


def test_where_there_is_no_terminal_nothing_is_drawn() -> None:
    stream = io.StringIO()
    with Progress("reading", 10, stream=stream) as progress:
        progress.advance(5)
        time.sleep(0.01)
    assert stream.getvalue() == ""
    assert progress.done == 5


def test_a_stopwatch_counts_from_its_making() -> None:
    look = stopwatch()
    time.sleep(0.02)
    assert 0.02 <= look()[0] < 5
