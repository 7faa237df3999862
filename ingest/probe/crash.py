"""Words for the end of a process: its exception's last line, the signal that killed it, or its exit code."""

import os
import signal
import time

from crosswind.data.schema.failure import Failure
from crosswind.data.schema.redaction import redacted, secrets_in
from crosswind.data.schema.run import RunState
from crosswind.ingest.probe.place import Place

MAX_REASON = 500
STOPPED_CODES = frozenset(128 + number for number in (signal.SIGINT, signal.SIGTERM))
STOPPING_ERRORS = frozenset(("KeyboardInterrupt", "SignalException", "SIGTERMException", "GracefulExit"))
HINTS = {
    signal.SIGKILL: "as by the out-of-memory killer or a limit of the job",
    signal.SIGSEGV: "an access to memory that is not its own, in compiled code",
    signal.SIGBUS: "memory that could not be had, such as a full /dev/shm",
    signal.SIGABRT: "compiled code gave up: its last lines say why",
    signal.SIGILL: "an instruction that this processor does not have",
}


def reason_of(error: BaseException) -> str:
    """Return an exception's kind and the line that says most, without secrets: `RuntimeError: out of memory`."""
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    kind = type(error).__name__
    if isinstance(error, SystemExit):
        return f"sys.exit({error.code})" if isinstance(error.code, int) else _clean(f"sys.exit: {error.code}")
    if hasattr(error, "error_index") and lines:  # torch.multiprocessing: the message is the child's whole traceback
        return _clean(lines[-1])
    return _clean(f"{kind}: {lines[0]}" if lines else kind)


def end_state(error: BaseException | None) -> RunState:
    """Return the state of a process that ends with this error: Ctrl-C and SIGTERM are no failures."""
    if error is None or (isinstance(error, SystemExit) and not error.code):
        return RunState.COMPLETED
    is_told = isinstance(error, SystemExit) and error.code in STOPPED_CODES
    return RunState.STOPPED if is_told or type(error).__name__ in STOPPING_ERRORS else RunState.FAILED


def failure_of(error: BaseException, place: Place, steps: int) -> Failure | None:
    """Return the failure of a rank that made so many steps; None if it did not fail."""
    if end_state(error) is not RunState.FAILED:
        return None
    return Failure(reason_of(error), place.rank, time.time_ns(), steps, place.node)


def exit_words(code: int, name: str | None = None) -> str:
    """Return an exit code, or the signal that a negative one or one above 128 stands for, in words."""
    cause = _signal(-code if code < 0 else code - 128)
    if cause is None:
        return f"killed by {name or f'signal {-code}'}" if code < 0 else f"exit code {code}"
    hint = f", {HINTS[cause]}" if cause in HINTS else ""
    return f"killed by {name or cause.name}{hint}"


def _signal(number: int) -> signal.Signals | None:
    try:
        return signal.Signals(number)
    except ValueError:
        return None


def _clean(text: str) -> str:
    text = redacted(text, secrets_in(os.environ))
    return "".join(letter if letter.isprintable() else " " for letter in text)[:MAX_REASON]
