"""The parts of ``benchmarks/mftr.py``: what is measured, and the tables of it."""
