"""How to find out."""
