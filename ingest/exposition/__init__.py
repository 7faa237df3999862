"""The agent's last readings in the text that Prometheus reads; imported only where an address to serve it on is set."""
