"""Tiers that count: one integer program over the pods of each kind that leave each node, and those that come to it."""
