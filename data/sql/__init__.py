"""SQL of users: a statement runs in a process of its own, over rows that were cut for whoever asks."""
