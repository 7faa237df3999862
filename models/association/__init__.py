"""Association: which of many columns go with slow runs, once drift and cohorts are taken out of both."""
