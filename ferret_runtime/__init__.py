"""Shared parts of API and worker processes: settings, logging, file descriptors, the broker, tracing."""
