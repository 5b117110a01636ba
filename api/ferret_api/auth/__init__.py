"""Who sends a request and what they may do: tokens, passwords, cookies, sign-in, OpenID Connect."""
