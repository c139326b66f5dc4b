"""What decides the problem beside the snapshot, and the problem it makes; fields are in `stowplan.models.settings`."""
