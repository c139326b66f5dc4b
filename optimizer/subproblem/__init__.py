"""A part of a placement freed, the rest frozen: which classes, nodes and rules belong to it."""
