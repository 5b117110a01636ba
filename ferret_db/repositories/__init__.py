"""All SQL: one module per table. Functions take the ``Session`` of the caller's transaction first."""
