"""Tiers whose cost reads the final state as a whole: search on that cost, and bounds of it."""
