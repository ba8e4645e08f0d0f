"""Methods that retrieve with tools and queries in fields, or with a language model, tied to the store.

MFTR, its ablations and the published baselines run from here on a stored benchmark or on a folder:

- what is asked for: ``methods`` (which exist, and their identity), ``options`` (a request settled), ``estimate``;
- tools and queries in fields: ``texts`` (stored sets), ``llm_texts`` and ``asking`` (made by a language model),
  ``standardizing`` and ``files`` (made or read from the command line);
- retrieving: ``sources`` (the texts of a run), ``parameters`` (its weights), ``scoring`` (φ and the ranking),
  ``retrieval`` and ``runs`` (parts that may be done twice), ``evaluation`` (a job's steps), ``folder`` (the command
  line), ``ablations``;
- what pages read of a finished run: ``reading``, ``explaining``, ``analyses`` with ``analysis_requests`` and
  ``analysis_workflow``.
"""
