"""Answers as people and programs read them."""
