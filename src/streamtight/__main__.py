"""`python -m streamtight` is the command line."""

from streamtight.cli import main

main()
