"""The same on the CPU: numba, compiled once and cached on disk, threads that release the interpreter."""
