"""How much one client may ask: rates, connections, uploads, and the sizes derived from two settings."""
