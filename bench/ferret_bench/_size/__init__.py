"""A study over the size of a model at fixed bytes: what noise does, and what the guard refuses."""
