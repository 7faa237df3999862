"""Needs of some tests that not every machine meets: they skip there, and fail where CI says that all of it is there.

Every reason begins with `needs NAME:`, so that the end of a run can sum up what was skipped for lack of what.
"""

import os
import re
import shutil
import sys
from collections import Counter
from collections.abc import Iterable
from pathlib import Path
from typing import NoReturn

import pytest

SHARED_DATA, ROOT, KERNEL = "../shared/data", "root", "another kernel"
NEEDS = re.compile(r"needs ([^:]+): ")


def lack(name: str, detail: str) -> NoReturn:
    """Skip this test for lack of a Debian package; fail in CI, where the Makefile installs them."""
    reason = f"needs {name}: {detail}"
    if os.environ.get("CI") == "true":
        pytest.fail(reason)
    pytest.skip(reason)


def program(name: str, package: str) -> Path:
    """Return the path of this program, from a Debian package."""
    path = shutil.which(name)
    if path is None:
        lack(package, f"no program {name}")
    return Path(path)


def node_module(name: str) -> Path:
    """Return the path of a file of npm's packages, which `make node` installs."""
    path = Path(__file__).parents[1] / ".node" / "node_modules" / name
    if not path.exists():
        lack("npm", f"no {name}: make node")
    return path


def needs(name: str, detail: str, *, unless: bool) -> pytest.MarkDecorator:
    """A mark that skips a test where something that no package brings is not there."""
    return pytest.mark.skipif(not unless, reason=f"needs {name}: {detail}")


def needs_data(path: Path) -> pytest.MarkDecorator:
    """A mark that skips a test where measurements that are not part of the project are not there."""
    return needs(SHARED_DATA, str(path), unless=path.exists())


def skipped_for_want(reasons: Iterable[str]) -> str:
    """One line: what was missing, and how many tests that skipped; empty where nothing was."""
    counts = Counter(match.group(1) for reason in reasons if (match := NEEDS.search(reason)))
    if not counts:
        return ""
    return "Skipped for lack of: " + ", ".join(f"{name} ({count})" for name, count in counts.most_common())


if __name__ == "__main__" and (summary := skipped_for_want(Path(sys.argv[1]).read_text().splitlines())):
    sys.stdout.write(f"\n{summary}\n")  # what DuckDB prints at its end lacks a line break
