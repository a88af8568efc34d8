"""Every public name of a package is there, and importing the package alone loads nothing heavy."""

import subprocess
import sys
from importlib import import_module

import pytest

PACKAGES = ["gamlp", "gamlp.graph", "gamlp.labels", "gamlp.model", "gamlp.propagate"]


@pytest.mark.parametrize("package", PACKAGES)
def test_every_public_name_is_imported_when_it_is_used(package):
    module = import_module(package)
    for name in module.__all__:
        value = getattr(module, name)
        assert name == "__version__" or value.__name__ == name
    with pytest.raises(AttributeError, match=f"module '{package}' has no attribute 'nothing'"):
        _ = module.nothing


def test_importing_the_packages_loads_nothing_heavy():
    heavy = "torch", "scipy", "pyarrow", "numba", "sklearn"
    program = f"import sys, {', '.join(PACKAGES)}; print([name for name in {heavy} if name in sys.modules])"
    assert subprocess.check_output([sys.executable, "-c", program], text=True).strip() == "[]"
