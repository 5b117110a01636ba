"""Everything that crosses a process: specs, states, wire format, task names, error codes. Never imports torch."""
