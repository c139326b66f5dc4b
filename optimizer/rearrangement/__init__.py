"""A walk that rearranges: simulated annealing with steps of several pods, for tiers that sum up what nodes cost."""
