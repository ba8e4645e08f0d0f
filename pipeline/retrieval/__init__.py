"""From a model's name to a run: the registry, lexical and dense retrieval, exact top-k, and the query adapter."""
