"""Where streams come from, and how a failing one is made small."""
