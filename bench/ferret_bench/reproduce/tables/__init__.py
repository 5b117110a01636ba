"""The paper's tables, one per file; the file's name is the table's, and ``STUDY`` is its definition."""
