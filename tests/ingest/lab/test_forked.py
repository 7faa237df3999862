import os
import sys
from collections.abc import Callable

import pytest

from crosswind.ingest.lab.forked import exit_after


def raises(error: BaseException) -> Callable[[], None]:
    def work() -> None:
        raise error

    return work


@pytest.mark.parametrize(
    ("work", "code"),
    [
        (lambda: None, 0),
        (raises(ValueError("bad")), 1),
        (raises(KeyboardInterrupt()), 1),
        (raises(SystemExit(3)), 3),
        (raises(SystemExit()), 0),
        (raises(SystemExit("bad")), 1),
    ],
)
def test_a_fork_ends_with_the_code_of_its_work(work: Callable[[], None], code: int) -> None:
    fork = os.fork()
    if fork == 0:
        sys.excepthook = lambda *_: None
        exit_after(work)
    assert os.waitstatus_to_exitcode(os.waitpid(fork, 0)[1]) == code
