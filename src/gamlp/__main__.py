"""`python -m gamlp` is the command line."""

from gamlp.cli import main

main()
