"""MFTR: tools ranked field by field with rewritten queries, learned weights and a penalty for missing parameters."""
