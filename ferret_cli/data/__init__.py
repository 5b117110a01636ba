"""``ferret data``: what the clients of an experiment hold, in numbers and in a picture."""
