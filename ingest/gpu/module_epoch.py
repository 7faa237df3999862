"""Since when a driver has been loaded, as a number that is another one after every load."""

import os
from pathlib import Path


def module_epoch(sysfs: Path, module: str) -> dict[str, int]:
    """The number of the module's folder in sysfs as a `driver_epoch`; nothing where the module is not to be seen.

    The kernel numbers such folders once, as they are made, and never uses a number again before all were used. Their
    times cannot serve: they tell when somebody looked at the folder for the first time since it was last forgotten.
    Source: fs/kernfs/dir.c (__kernfs_new_node), fs/kernfs/inode.c (kernfs_init_inode)
    """
    try:
        return {"driver_epoch": os.stat(f"{sysfs}/module/{module}").st_ino}  # noqa: PTH116 - at every sample
    except OSError:
        return {}
