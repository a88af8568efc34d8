"""Where a propagation runs: local (within a memory limit or without), cuda, ray. One contract, `base.Engine`."""
