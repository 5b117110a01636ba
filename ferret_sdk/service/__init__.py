"""For researchers: the service, its runs and users, and how runs are shown. Importing it loads no torch."""
