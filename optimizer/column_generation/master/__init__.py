"""The restricted master: its linear program, its columns, and the bounds it proves."""
