"""The lake: metric sets as immutable Parquet parts, appended, compacted and read through DuckDB."""
