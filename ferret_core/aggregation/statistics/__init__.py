"""What is inside a round's update: its step, its noise and the weights block by block, and how participants agree."""
