"""The registry: versions of fitted models, kept as files without pickle, and what is known of each."""
