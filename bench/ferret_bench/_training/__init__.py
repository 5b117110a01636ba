"""The parts of ``ferret_bench/training.py``."""
