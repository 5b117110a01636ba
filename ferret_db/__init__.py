"""The database: tables, sessions, repositories (all SQL lives there) and the round engine."""
