"""Projects: their experiments, members, and allowed models and data."""
