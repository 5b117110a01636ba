"""From a round's contributions to the next model: filters, guards, noise, and statistics of the update."""
