"""Questions to Z3, and Python functions read as formulas."""
