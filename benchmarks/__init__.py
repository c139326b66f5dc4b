"""Measurements as commands; their figures are kept in ``docs/benchmarks.md``."""
