"""The words that all layers share, and the store that keeps what was measured."""
