"""``ferret tune``: hyper-parameter search on Optuna, in this process or through a service."""
