"""The epoch of a driver: a number that changes whenever the driver is loaded."""

import os
from pathlib import Path


def module_epoch(sysfs: Path, module: str) -> dict[str, int]:
    """Return the number of the module's folder in sysfs as a `driver_epoch`; nothing if there is no such module.

    The kernel numbers such folders once, as they are made, and never uses a number again before all were used. Their
    times do not serve: they are those of the first look at the folder since it was last dropped from the cache.
    Source: fs/kernfs/dir.c (__kernfs_new_node), fs/kernfs/inode.c (kernfs_init_inode)
    """
    try:
        return {"driver_epoch": os.stat(f"{sysfs}/module/{module}").st_ino}  # noqa: PTH116 - at every sample
    except OSError:
        return {}
