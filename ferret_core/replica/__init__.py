"""A copy of the global model: moved by rounds, rebuilt from the ledger, written as checkpoints and exports."""
