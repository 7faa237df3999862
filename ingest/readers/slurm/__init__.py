"""Readers of Slurm's records of its jobs, in their several shapes."""
