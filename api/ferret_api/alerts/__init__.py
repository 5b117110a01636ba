"""Alerts: who is told what happens to the experiments of a project."""
