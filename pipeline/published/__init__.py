"""Figures printed in the papers, as data files."""
