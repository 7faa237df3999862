"""Validation of node names in files."""

import re

NAME = re.compile("[A-Za-z0-9][A-Za-z0-9._-]{0,252}")


def is_node(text: object) -> bool:
    """Return whether the text is a host name, and so cannot be a path."""
    return isinstance(text, str) and NAME.fullmatch(text) is not None
