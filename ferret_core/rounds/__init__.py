"""Pure functions of a round: its participants, its deadline, early stopping, and its costs."""
