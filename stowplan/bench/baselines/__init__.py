"""Comparison with simple methods and one-line bounds, which names every case in which a page of NumPy is better."""
