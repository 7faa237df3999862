"""A lake in an object store: objects in a bucket, the catalog that names them, and copies in a folder."""
