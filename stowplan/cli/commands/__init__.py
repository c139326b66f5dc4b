"""One file a command, named as the command. What it works with is imported inside, so that help costs nothing."""
