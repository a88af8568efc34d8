"""TRAIN: batches, one stage, the stages of reliable labels, checkpoints, metrics; the hops that all of it reads."""
