"""The commands, one file each, named as the command. They import inside their functions, so that help is fast."""
