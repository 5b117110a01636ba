"""Several processes that hold one model together: who they are, what each holds, and how they speak to each other.

Nothing here knows what a model is for. :mod:`ferret_core.sharded` puts a model into shards.
"""
