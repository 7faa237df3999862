"""Who is slower than its peers: ranks, devices, nodes and switches, over all runs and while one is in progress."""
