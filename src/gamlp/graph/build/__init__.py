"""From ids and edge lists to a CSR adjacency, within a memory limit or without."""
