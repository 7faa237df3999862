"""Studies in a folder that many nodes share, without a server, a database or locks."""

from crosswind.models.tuner.service.folder.clock import FileSystemClock, FolderClock
from crosswind.models.tuner.service.folder.service import FolderStudyService

__all__ = ["FileSystemClock", "FolderClock", "FolderStudyService"]
