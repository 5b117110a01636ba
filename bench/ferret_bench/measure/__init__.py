"""How every benchmark measures: time, memory, and the machine they belong to."""
