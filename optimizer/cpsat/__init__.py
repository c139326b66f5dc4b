"""A problem, or a sub-problem, as a CP-SAT model."""
