"""Does every run of a job keep a temporal property?"""
