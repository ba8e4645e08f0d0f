"""What is kept: SQL tables and parquet artifacts (ground floor)."""
