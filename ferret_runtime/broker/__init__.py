"""The broker of task messages, which is Redis, as every process of the service reaches it.

Its messages are hints: what is lost here, the reconciler calls for again.
"""
