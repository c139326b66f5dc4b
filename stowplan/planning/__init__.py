"""Plans: to a placement, for a drain, for pods to schedule; and replays of plans."""
