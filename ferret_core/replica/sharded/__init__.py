"""A model that several processes hold: requirements, sharding, loading and writing."""
