"""How several benchmark scripts write what they measured."""
