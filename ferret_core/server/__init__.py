"""How a round's mean update moves the global model: norm clipping, robust means, the optimizer and its schedule."""
