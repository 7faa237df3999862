"""Readers of Slurm's records of jobs, in all their formats."""
