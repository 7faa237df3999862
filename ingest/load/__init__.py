"""Loading into the store: spools, segments that are sent, other tools' files, and Slurm's accounting."""
