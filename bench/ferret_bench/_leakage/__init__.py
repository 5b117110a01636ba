"""The parts of ``leakage.py``."""
