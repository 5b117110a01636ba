"""Application of a round's mean update to the global model: norm clipping, robust means, the optimizer and its
schedule.
"""
