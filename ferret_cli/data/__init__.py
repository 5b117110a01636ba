"""``ferret data``: the examples of an experiment's clients, in numbers and in a picture."""
