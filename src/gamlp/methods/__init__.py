"""Methods by name: each a class with fit and predict, behind one base class."""

from gamlp.methods.base import ADDITIONS, FittedMethod, Method
from gamlp.methods.registry import BASES, method_named

__all__ = ["ADDITIONS", "BASES", "FittedMethod", "Method", "method_named"]
