"""Reports: one run, or one scheduler job with the verdicts on its runs, on one page."""
