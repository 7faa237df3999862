"""The registry of fitted models: versions saved as files without pickle, with their evidence."""
