"""Parts of the benchmark of the API: who takes part, the service, the load, and the rounds that turn meanwhile."""
