"""Reusable pieces of pages."""
