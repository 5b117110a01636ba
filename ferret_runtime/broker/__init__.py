"""The broker of task messages, Redis, and its clients in the service's processes.

Its messages are hints: the reconciler resends lost ones.
"""
