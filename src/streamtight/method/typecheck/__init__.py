"""Does a job depend on an order, or on a choice, that Spark does not fix?"""
