"""The catalog of a lake in an object store."""
