"""Where a propagation runs: local (within a memory limit or without), cuda, ray. One contract, `base.Engine`.

ENGINES has them by name; it stands here, where nothing heavy is imported, because the help of --engine lists it.
"""

ENGINES = {  # name → module and class, imported when it is chosen
    "local": ("gamlp.propagate.engines.local", "LocalEngine"),
    "cuda": ("gamlp.propagate.engines.cuda", "CudaEngine"),
    "ray": ("gamlp.propagate.engines.ray", "RayEngine"),
}
