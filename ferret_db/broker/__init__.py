"""The broker of task messages, Redis or RabbitMQ, as every process of the service reaches it.

Its messages are hints: what is lost here, the reconciler calls for again.
"""
