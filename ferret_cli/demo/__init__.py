"""``ferret demo``: the whole service on generated data, with one real participant beside the simulated clients."""
