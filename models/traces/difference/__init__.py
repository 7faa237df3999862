"""The difference of the step times of two runs, in parts that sum to it."""
