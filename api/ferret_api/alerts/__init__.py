"""Alerts: webhooks and e-mails about the experiments of a project."""
