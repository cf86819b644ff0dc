"""What computations are, and what a run of one is."""
