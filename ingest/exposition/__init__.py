"""What the agent read last, in the text that Prometheus reads; imported only where an address to serve it on is set."""
