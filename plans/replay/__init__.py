"""A plan played through on the scheduler framework: what becomes of it where nobody steers, or where tokens do."""
