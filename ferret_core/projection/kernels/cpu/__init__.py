"""CPU kernels: numba, compiled once and cached on disk; the threads release the interpreter's lock."""
