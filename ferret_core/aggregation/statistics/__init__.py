"""Statistics of a round's update: its step, its noise and the weights by block, and cosines between participants."""
