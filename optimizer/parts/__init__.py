"""Exact parts: pods that share no node and no rule with the others are placed by themselves."""
