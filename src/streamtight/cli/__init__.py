"""The command line. Thin: it reads arguments, asks, and shows the answers."""
