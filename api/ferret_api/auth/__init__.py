"""Authentication: the admin token, passwords and cookies."""
