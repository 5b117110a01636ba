"""Parts of the benchmark ``uploads``."""
