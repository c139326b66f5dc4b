"""Benchmarks of the literature as instances: one package or file for each format.

Every format has three faces that share nothing but the parsed file: a reader into a `Problem`, a writer of solutions
in the format's own way, and a checker of written solutions by the format's own rules, without the `Problem`.
"""
