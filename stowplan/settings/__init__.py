"""From settings to the problem; the fields of settings are in `stowplan.models.settings`."""
