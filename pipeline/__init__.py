"""What is computed: formats, scoring, retrieval and the jobs that tie them to the store (middle floor)."""

from pipeline.kernel_cache import separate_kernel_cache

separate_kernel_cache()
