"""Benchmarks of the literature, solved as a user would solve an instance, and checked independently."""
