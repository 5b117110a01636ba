"""The parts of ``web.py``."""
