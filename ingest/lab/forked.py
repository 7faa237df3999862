"""The end of a fork, which never goes on in the code of its parent."""

import os
import sys
from collections.abc import Callable
from typing import NoReturn


def exit_after(work: Callable[[], None]) -> NoReturn:
    """Do the work of this fork, print its error if it fails, and end the process with its exit code."""
    code = 1
    try:
        work()
        code = 0
    except SystemExit as end:
        code = end.code if isinstance(end.code, int) else int(end.code is not None)
    except BaseException as error:  # noqa: BLE001 - see above
        sys.excepthook(type(error), error, error.__traceback__)
    finally:
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(code)
