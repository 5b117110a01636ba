"""``ferret doctor``: what this machine has, what it lacks, and the command that fixes it."""
