"""Studies in the formats of other tuners, written without these."""
