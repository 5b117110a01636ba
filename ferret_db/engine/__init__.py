"""The round engine: transitions that touch several tables.

The API and the workers call each transition inside one ``Database.begin()``. It locks its experiment first, so the
transitions of one experiment run one after another. Leasing, heartbeats and giving back touch one assignment and lock
nothing else. A state changes only by compare-and-swap. Events and task messages commit with it.
"""
