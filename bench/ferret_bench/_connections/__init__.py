"""Parts of the benchmark ``connections``."""
