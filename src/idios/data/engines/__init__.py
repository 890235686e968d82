"""One engine a module: DuckDB, PostgreSQL, Spark. The drivers are imported here alone, when a source needs them."""
