"""Bundles: an answer with all that is needed to make it again, in one file."""
