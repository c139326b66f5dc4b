"""Measured load of nodes: from load-watcher, Prometheus or a file."""
