"""Metrics, the multi-reference kernel and averages."""
