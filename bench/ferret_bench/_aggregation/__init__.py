"""Inputs of ``ferret bench aggregation``: a model and updates of random numbers."""
