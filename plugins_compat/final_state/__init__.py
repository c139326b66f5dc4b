"""Scores of final states: what every pod would score on its node, with all others in place, class by class."""
