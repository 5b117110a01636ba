"""The parts of ``bench/control.py``."""
