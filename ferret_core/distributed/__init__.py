"""Process groups: several processes that hold one model, the distribution of tensors, and collectives.

This package is independent of the model's use: :mod:`ferret_core.replica.sharded` cuts a model into shards.
"""
