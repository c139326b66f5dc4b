"""Replays of plans on the scheduler framework, with replacements steered by tokens or not."""
