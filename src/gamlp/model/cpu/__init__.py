"""Fused kernels for the processor; plain torch is the reference and the GPU path."""
