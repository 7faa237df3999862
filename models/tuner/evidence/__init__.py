"""What runs tell a tuner: earlier ones as sources and trials, disturbed ones, and hopeless ones while they go on."""
