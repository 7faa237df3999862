"""Devices by their data sheets, links between them, and collective operations over these links."""
