"""Are two Spark programs equal on every input?"""
