"""Projects: whose experiments they are, who sees them, and what they may use."""
