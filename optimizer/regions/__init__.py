"""Regions: nodes of one part, divided among workers, solved side by side and drawn anew in each round."""
