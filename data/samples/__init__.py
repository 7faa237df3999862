"""Our own measured samples, as they ship with the package; each folder's README says how they came about."""

from importlib.resources import as_file, files

import pandas as pd


def tuning_grid() -> pd.DataFrame:
    """A small distributed training program at every configuration of a grid, one row a measurement.

    Parameters: micro_batch, accumulation_steps, bucket_cap_mb, threads, gradient_as_bucket_view, precision. Objective:
    `seconds_per_1000_samples`, lower is better; `repeat` numbers the measurements of one configuration.
    """
    return sample_table("tuning/ddp_grid")


def sample_table(name: str) -> pd.DataFrame:
    """The table of this name, folder and all."""
    with as_file(files("crosswind.data.samples") / f"{name}.parquet") as path:
        return pd.read_parquet(path)
