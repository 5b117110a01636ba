"""Process groups: several processes that hold one model, what each holds of a tensor, and their collectives.

Nothing here knows what a model is for: :mod:`ferret_core.replica.sharded` cuts a model into shards.
"""
