"""`python -m streamtight` is the command line."""

from streamtight.cli.app import main

main()
