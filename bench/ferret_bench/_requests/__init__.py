"""Parts of the benchmark ``requests``."""
