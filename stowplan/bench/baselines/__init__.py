"""Simple methods and one-line bounds beside the product: whoever falls behind a page of NumPy is named."""
