"""The figures, one file each: measurement, derived numbers, drawing."""
