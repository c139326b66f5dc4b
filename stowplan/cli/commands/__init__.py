"""One function a command, one file a group of commands. Imports are inside, so that help costs nothing."""
