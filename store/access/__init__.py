"""Reads and writes that pages and jobs need, by topic."""
