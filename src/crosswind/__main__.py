"""`python -m crosswind VERB ...`, for launchers that start modules: torchrun -m crosswind check."""

import sys

from crosswind.cli.main import script

if __name__ == "__main__":
    sys.exit(script())
