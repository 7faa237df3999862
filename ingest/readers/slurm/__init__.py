"""What Slurm tells of its jobs, in its several shapes."""
