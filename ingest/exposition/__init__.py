"""The agent's last readings in Prometheus's text formats; imported only where an address to serve them is set."""
