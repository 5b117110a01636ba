"""The paper's tables and figures that need training: a grid of runs, kept as they finish, and their files."""
