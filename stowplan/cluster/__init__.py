"""The way to a live cluster, and files that survive a crash."""
