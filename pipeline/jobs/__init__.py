"""The work that ties computation to the store."""
