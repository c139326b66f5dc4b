"""Compiled code of local search: a flat image of a problem and a placement, and what changes it."""
