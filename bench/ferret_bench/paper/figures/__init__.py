"""The figures, one file each: what it measures, what follows from that, how it is drawn."""
