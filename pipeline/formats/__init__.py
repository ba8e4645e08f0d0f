"""Run files and benchmarks: read, sniff, validate, write."""
