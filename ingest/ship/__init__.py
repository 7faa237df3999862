"""Sending the spool's sealed segments to a server."""
