"""The floor under all rooms: atomic writes, checksums, locks, memory-mapped reading, huge pages, threads."""
