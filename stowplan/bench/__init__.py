"""Benchmarks of the literature, run the way a user would run an instance of one's own, and judged independently."""
