"""The pricing problem: the best patterns of one node under given duals."""
