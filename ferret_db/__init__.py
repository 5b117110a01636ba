"""The database: tables, sessions, repositories (which hold all SQL) and the round engine."""
