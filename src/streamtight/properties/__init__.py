"""What should hold of a run."""
