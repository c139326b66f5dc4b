"""Plans: from a placement, for a drain, for pods to fit in, and what becomes of them."""
