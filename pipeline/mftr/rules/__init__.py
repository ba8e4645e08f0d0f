"""Standardizing by rules: documents that already are structured, field by field, without a language model.

One module reads one format; ``sniff`` tells them apart. The rules fill what the document states and invent nothing.
"""

from pipeline.mftr.rules.sniff import Format, Sniffed, sniff
from pipeline.mftr.rules.standardize import RULES_VERSION, standardize, standardize_sniffed

__all__ = ["RULES_VERSION", "Format", "Sniffed", "sniff", "standardize", "standardize_sniffed"]
