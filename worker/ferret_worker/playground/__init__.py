"""The playground's worker: it answers questions to checkpoints, one at a time, and holds up no round.

It is a process of its own with a low priority for the CPU. Torch is loaded with the first question, so that a service
in which nobody asks pays little for it.
"""
