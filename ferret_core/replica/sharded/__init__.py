"""A model held by several processes: what can be held so, how it is cut up, loaded and written."""
