"""Ray: how a cluster is reached, who works in it, and what becomes of jobs whose workers are lost."""
