"""Large neighbourhood search: free a part of a placement, solve it exactly, and go on from there."""
