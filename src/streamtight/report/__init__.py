"""How verdicts are shown. Reports never run anything."""
