"""What is asked of a GPU, one file for each part; ``ferret_bench/gpu/runner.py`` has their order."""
