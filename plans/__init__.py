"""From a placement to a plan: movability, disruption budgets, waves, and replays."""
