"""The commands that this distribution brings to ``ferret``, found by its entry points."""
