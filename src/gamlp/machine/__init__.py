"""What this machine has and how fast it is, and what a propagation of any size would cost on it."""
