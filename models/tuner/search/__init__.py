"""Search: the tuners, what they know of a study, and the choice among them."""
