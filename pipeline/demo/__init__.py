"""The bundled demo benchmarks, written for this project."""
