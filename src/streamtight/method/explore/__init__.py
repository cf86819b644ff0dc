"""What can a pipeline do, on any input?"""
