"""The errors that all layers share.

ProjectError
├── UnavailableError    a source, server or file is not there (now)
├── MalformedError      something was read that cannot be understood
├── NotFoundError       no such run, study, trial ...
├── ForbiddenError      the caller may see it, and not do this
├── ConflictError       it contradicts what is stored
│   └── PausedError     ... until the study goes on
└── InvalidInputError   the caller asked for something impossible
"""


class ProjectError(Exception):
    """Anything Crosswind refuses; its message names the file or field, the value and what was expected."""


class UnavailableError(ProjectError):
    """A source, server or file is not there, or not now."""


class GoneError(UnavailableError):
    """Something that was stored is not there any more."""


class MalformedError(ProjectError):
    """Something was read that cannot be understood."""


class NotFoundError(ProjectError):
    """There is no such run, study or trial."""


class ForbiddenError(ProjectError):
    """The caller may see it, and not do this with it."""


class ConflictError(ProjectError):
    """The request contradicts what is stored."""


class PausedError(ConflictError):
    """The study is paused: it hands out no trial until it goes on."""


class InvalidInputError(ProjectError):
    """The caller asked for something impossible."""
