"""Search: the tuners, the trials that they observe, and the choice among them."""
