"""``ferret doctor``: checks of this machine, with the command that fixes each problem."""
