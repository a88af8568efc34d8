"""TRAIN: batches, one stage, the stages of reliable labels, checkpoints, metrics, run directories."""
