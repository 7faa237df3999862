"""The folders of a laboratory below its store, and safe deletion of its scratch folder."""

import shutil
from dataclasses import dataclass
from pathlib import Path

from crosswind.data.schema.errors import ConflictError

SCRATCH = ".crosswind-lab-scratch"
MARKER = "made-by-crosswind-lab"  # root deletes the folder, and --store may name any: it must be certainly ours


@dataclass(frozen=True)
class Folders:
    """The places of a laboratory's files."""

    home: Path

    @property
    def spools(self) -> Path:
        """Return the folder of the spools to store."""
        return self.home / "spools"

    @property
    def logs(self) -> Path:
        """Return the folder of the agents' and workers' logs, a folder for each node; they stay."""
        return self.home / "lab-logs"

    @property
    def scratch(self) -> Path:
        """Return the folder of files that are deleted with the laboratory."""
        return self.home / SCRATCH

    def renew_scratch(self) -> None:
        """Make the scratch folder, in place of an earlier one. Raises: ConflictError as `remove_scratch`."""
        self.remove_scratch()
        self.scratch.mkdir(parents=True)
        (self.scratch / MARKER).touch()

    def remove_scratch(self) -> bool:
        """Delete the scratch folder. Return whether there was one. Raises: ConflictError when no laboratory made it."""
        if not self.scratch.is_symlink() and not self.scratch.exists():
            return False
        marker = self.scratch / MARKER
        if self.scratch.is_symlink() or not marker.is_file():
            raise ConflictError(f"{self.scratch}: holds no {MARKER}, so it is not a laboratory's: move it away")
        for path in self.scratch.iterdir():
            if path != marker:  # last: the rest of an interrupted deletion is still recognised
                _delete(path)
        marker.unlink()
        self.scratch.rmdir()
        return True


def _delete(path: Path) -> None:
    if path.is_dir() and not path.is_symlink():
        shutil.rmtree(path)
    else:
        path.unlink()
