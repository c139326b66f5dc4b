"""What is computed from a problem: solutions, comparisons, frontiers, verifications."""
