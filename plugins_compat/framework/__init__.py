"""The scheduling framework: extension points, cluster state, one pod's cycle, the queue."""
