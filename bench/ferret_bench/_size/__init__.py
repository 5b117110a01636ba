"""A study over the size of a model at fixed bytes: the effect of noise, and the guard's refusals."""
