"""Series as Prometheus has them, in files, over its API or sent by it, as rows of ours."""
