"""Every code block of every page runs, page by page from the top."""

from sybil import Sybil
from sybil.parsers.markdown import PythonCodeBlockParser, SkipParser

pytest_collect_file = Sybil(
    parsers=[PythonCodeBlockParser(), SkipParser()], patterns=["*.md"], fixtures=["spark_if_needed"]
).pytest()
