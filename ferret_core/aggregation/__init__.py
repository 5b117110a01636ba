"""Aggregation of a round's contributions into the next model: filters, guards, noise, and statistics of the update."""
