"""How a placement is reached: who can be moved, within which budgets, in which order, and what becomes of it."""
