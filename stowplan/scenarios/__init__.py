"""What-if: scenarios, which are pure functions of a snapshot and settings, and what they change."""
