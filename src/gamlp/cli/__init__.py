"""The command line: `gamlp COMMAND`. Heavy imports happen inside the commands, so that --help answers at once."""

from gamlp.cli.app import main

__all__ = ["main"]
