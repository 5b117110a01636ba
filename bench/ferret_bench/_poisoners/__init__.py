"""The parts of ``poisoners.py``."""
