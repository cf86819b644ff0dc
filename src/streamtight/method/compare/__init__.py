"""Do two jobs, or two streams, give the same?"""
