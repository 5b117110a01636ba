"""What keeps one participant from ruining a round: norms are bounded, numbers ranked, an exploded round undone."""
