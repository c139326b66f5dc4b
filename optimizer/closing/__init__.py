"""Closing of nodes: fewer nodes in use, or cheaper ones, where nothing limits moves."""
