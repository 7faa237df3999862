"""Login names of this machine; apart from all else about access, because programs that are recorded load it."""

import os
import pwd


def login_name(uid: int | None = None) -> str:
    """Return the login name of a uid, by default of this process's, or `uid=NUMBER` where it has none."""
    number = os.geteuid() if uid is None else uid
    try:
        return pwd.getpwuid(number).pw_name
    except KeyError:
        return f"uid={number}"
