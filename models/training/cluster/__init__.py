"""Training on a Dask cluster: features of every run where there is room for them, and trees over all of them."""
