"""A model that several processes hold: what can be sharded, how it is cut, loaded and written."""
