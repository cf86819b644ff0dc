"""What does the pytest plugin cost those who do not use it? CPU time of whole test runs, with it and without it.

python benchmarks/plugin.py
"""

from __future__ import annotations

import os
import resource
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path

ROUNDS = 15
TESTS = 1000


def cpu_seconds(folder: Path, *arguments: str) -> float:
    """The CPU time of a test run, of which Python has compiled everything before."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", *arguments]
    environment = {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}
    environment["PYTHONPYCACHEPREFIX"] = str(folder.parent / "compiled")
    subprocess.run(command, cwd=folder, env=environment, capture_output=True, check=False)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def compared(name: str, folder: Path) -> None:
    """In turn, so that what else runs on the machine slows both."""
    with_it, without = [], []
    for _ in range(ROUNDS + 1):
        with_it.append(cpu_seconds(folder))
        without.append(cpu_seconds(folder, "-p", "no:streamtight"))
    # The first round compiles. What is left is compared pair by pair.
    extra = statistics.median(one - other for one, other in zip(with_it[1:], without[1:], strict=True))
    print(f"{name:40} {statistics.median(without[1:]) * 1000:7.0f} ms without  {extra * 1000:+7.1f} ms with the plugin")


def main() -> None:
    with tempfile.TemporaryDirectory() as place:
        folder = Path(place) / "project"
        folder.mkdir()
        compared("pytest starts, nothing to run", folder)
        (folder / "test_one.py").write_text("def test_one(): pass\n")
        compared("one test that does not use it", folder)
        tests = "".join(f"def test_{number}(): pass\n" for number in range(TESTS))
        (folder / "test_one.py").write_text(tests)
        compared(f"{TESTS:,} tests that do not use it", folder)


if __name__ == "__main__":
    main()
