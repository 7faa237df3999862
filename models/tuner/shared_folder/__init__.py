"""Studies in a folder that many nodes share, without a server, a database or locks."""

from crosswind.models.tuner.shared_folder.clock import FileSystemClock, FolderClock
from crosswind.models.tuner.shared_folder.desk import FolderDesk

__all__ = ["FileSystemClock", "FolderClock", "FolderDesk"]
