"""An experiment before it runs: its specification checked, changed and compared, its cost estimated, its data read."""
