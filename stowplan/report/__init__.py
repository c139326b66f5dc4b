"""Reports of answers: text, rows, and charts."""
