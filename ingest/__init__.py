"""The intake of measurements: from kernel counters, training loops and other tools' files to the store."""
