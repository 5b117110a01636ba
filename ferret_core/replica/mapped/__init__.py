"""A global model in memory-mapped files, for aggregation of models larger than memory."""
