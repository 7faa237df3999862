"""PostgreSQL, an S3 server, servers behind a proxy and a Dask cluster, on one machine and over loopback."""
