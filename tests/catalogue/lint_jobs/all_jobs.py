"""All jobs of the catalogue of the order lint."""

from __future__ import annotations

import clean_jobs
import mapreduce_jobs
import order_bugs_jobs
import stream_jobs
import trap_jobs
from corpus import JOBS, LintJob
from pyspark import cloudpickle

MODULES = (order_bugs_jobs, clean_jobs, mapreduce_jobs, stream_jobs, trap_jobs)
for _module in MODULES:
    cloudpickle.register_pickle_by_value(_module)  # the workers do not have this folder on their path

__all__ = ["JOBS", "LintJob"]
