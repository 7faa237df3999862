"""Kills work on a copy of a folder with -9 before each of its changes of the disk."""

import shutil
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

# One process for each change, which it does not live to make; all are forked from one that has loaded us.
KILLED = """
import os, shutil, signal, sys
from pathlib import Path
{imports}
before, CHANGES = Path(sys.argv[1]), ("os.rename", "os.remove", "os.mkdir")

def killed_before(number):
    seen = 0
    def look(event, arguments):
        nonlocal seen
        if event in CHANGES or event == "open" and arguments[2] & (os.O_WRONLY | os.O_RDWR):
            seen += 1
            if seen == number:
                os.kill(os.getpid(), signal.SIGKILL)
    return look

for number in range(1, {most}):
    copy = before.parent / f"killed-{{number}}"
    shutil.copytree(before, copy)
    pid = os.fork()
    if not pid:
        {first}
        sys.addaudithook(killed_before(number))
        {work}
        os._exit(0)
    _, status = os.waitpid(pid, 0)
    if status == 0:
        break
    assert os.WIFSIGNALED(status), status
print(number)
"""


@contextmanager
def killed_before_each_change(
    before: Path, imports: str, work: str, *, most: int, first: str = ""
) -> Iterator[list[Path]]:
    """Yield copies of a folder, in each of which the work on `copy` ended one change later; then remove them.

    What is done `first` is not killed. Both know the `number` of the copy.
    """
    program = KILLED.format(imports=imports, work=work, most=most, first=first)
    command = [sys.executable, "-c", program, str(before)]
    count = int(subprocess.run(command, check=True, capture_output=True, text=True, timeout=300).stdout)
    copies = [before.parent / f"killed-{number}" for number in range(1, count + 1)]
    yield copies
    for copy in copies:
        shutil.rmtree(copy)
