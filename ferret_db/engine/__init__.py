"""The round engine: transitions that touch several tables.

Each is called inside one ``Database.begin()``, by the API and by workers alike, and locks its experiment first,
so that the transitions of one experiment follow each other. Leasing, heartbeats and giving back touch one assignment
and lock nothing else. A state changes only by compare-and-swap; events and task messages commit with it.
"""
