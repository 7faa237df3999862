"""SearchCache of configurations that other tuners made."""
