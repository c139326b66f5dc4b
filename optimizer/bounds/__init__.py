"""Lower bounds: what no legal placement can be below."""
