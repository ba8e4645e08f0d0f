"""Expansions of stored benchmarks with ToolEX: asking for them, doing them, reading what they made."""
