"""Readers of the accounting of schedulers other than Slurm."""
