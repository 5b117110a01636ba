"""Pure functions of a round: who takes part, how long it stays open, when an experiment stops, what a round costs."""
