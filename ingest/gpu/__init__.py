"""What the vendors' GPU libraries need besides a collector: sessions, remembered refusals, epochs."""
