"""All HTTP between a client and the server: transport, retries, proxies, certificates, and paths from a server's
names.
"""
