"""The whole problem as a CP-SAT model, for proofs."""
