"""Where problems come from: cluster dumps, public traces, generators."""
