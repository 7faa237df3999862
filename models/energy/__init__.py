"""Power and energy of training runs: of nodes, of devices under a power limit, and their carbon."""
