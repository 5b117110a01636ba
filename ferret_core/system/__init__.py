"""The machine: devices, memory, files, permissions, certificates, heartbeats, and the failpoints of tests."""
