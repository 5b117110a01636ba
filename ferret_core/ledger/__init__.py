"""The hash-chained record of rounds, the signatures in it, and receipts that prove one contribution."""
