"""The parts of ``bench/projection.py``."""
