"""How may a sequential program be split over workers, and does the split change anything?"""
