"""Samples that other collectors wrote."""
