"""What all packages write and read by: atomic writes, checksums, locks, memory-mapped reading, huge pages, threads."""
