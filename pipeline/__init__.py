"""What is computed: formats, scoring, retrieval and the jobs that tie them to the store (middle floor)."""
