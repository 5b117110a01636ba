"""What API and worker processes share: settings, logging, file descriptors, the broker, tracing."""
