"""What ``ferret bench aggregation`` measures with: a model and updates of random numbers."""
