"""The parts of ``edge.py``."""
