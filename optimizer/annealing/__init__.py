"""Local search: finds good placements quickly, proves nothing."""
