"""Placements from patterns: diving, integer masters, filling, assembly."""
