"""Connection handling below HTTP: limits, eviction of idle connections, and timeouts."""
