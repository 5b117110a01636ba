"""All SQL: one module per table, functions that take the ``Session`` of the caller's transaction first."""
