"""Association of many columns with slow runs, once drift and cohorts are taken out of both."""
