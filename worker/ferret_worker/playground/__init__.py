"""The playground's worker: it answers questions to checkpoints, one at a time, and delays no round.

It is a separate process with a low CPU priority. Torch is loaded with the first question, so an unused playground costs
little.
"""
