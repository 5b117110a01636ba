"""``ferret demo``: the whole service on generated data, with one real participant in addition to the simulated
clients.
"""
