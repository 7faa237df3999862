"""Small YAML files of other tools."""

import re
from collections.abc import Mapping
from pathlib import Path

from crosswind.data.schema.errors import MalformedError, UnavailableError
from crosswind.data.yaml_text import parsed

FILE_LIMIT = 1 << 20  # bytes
MERGE = re.compile(r"<<\s*:")  # which no tracker writes, and which may make a very large mapping of a small file


def mapping_in(path: Path) -> Mapping[object, object]:
    """Return the one mapping in a file; tags for objects are refused.

    Raises: MalformedError, UnavailableError (also without PyYAML).
    """
    try:
        with path.open("rb") as stream:
            text = stream.read(FILE_LIMIT + 1).decode()
        if len(text) > FILE_LIMIT or MERGE.search(text):
            raise MalformedError(f"{path}: more than {FILE_LIMIT} bytes, or merges; expected a small YAML file")
        document = parsed(text)
    except ImportError as error:
        raise UnavailableError(f"{path}: PyYAML is needed: pip install 'crosswind[server]'") from error
    except OSError as error:
        raise UnavailableError(f"{path}: {error.strerror}") from error
    except (ValueError, TypeError, RecursionError) as error:
        reason = str(error).splitlines()[0] if str(error) else type(error).__name__
        raise MalformedError(f"{path}: not the YAML that was expected: {reason}") from error
    if not isinstance(document, dict):
        raise MalformedError(f"{path}: {type(document).__name__}; expected a mapping")
    return document
