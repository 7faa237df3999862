"""What is measured: speed beside a peer (`make bench`), accuracy beside baselines (`make accuracy`)."""
