"""The benchmarks are not part of the package: they are found beside it."""

import sys
from pathlib import Path

sys.path.append(str(Path(__file__).parents[2]))
