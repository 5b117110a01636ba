"""The researchers' client: the service, its runs and users, and the display of runs. Importing it loads no torch."""
