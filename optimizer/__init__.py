"""The mathematics of placement. Nothing in this package knows that Kubernetes exists."""
