"""The parts of ``bench/training.py``."""
