"""A global model in mapped files: for aggregation where the model is larger than the memory should be."""
