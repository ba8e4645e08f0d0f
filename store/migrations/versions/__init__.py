"""One file a change of the tables, named after its level."""
