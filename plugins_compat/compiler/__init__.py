"""From a snapshot, a profile and an objective to a problem that knows nothing of Kubernetes."""
