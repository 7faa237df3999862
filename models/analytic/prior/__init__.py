"""Step times of rows by formula: calibrated from runs, corrected where runs deviate."""
