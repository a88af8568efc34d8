"""Run directories: train, resume, compare, tune."""
