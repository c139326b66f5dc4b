"""Large neighborhood search: free a part of the incumbent, solve that sub-problem exactly, and repeat."""
