"""NuSMV or nuXmv as a second opinion, if one is on the PATH: what it says of the properties of an SMV text.

Nothing here is needed to explore: our own search decides. It is for those who have such a checker and want to see that
both agree, and for our tests.
"""

from __future__ import annotations

import re
import shutil
import subprocess
import tempfile
from pathlib import Path
from typing import Final

from streamtight.errors import EncodingError, PipelineError

NAMES: Final = ("NuSMV", "nusmv", "nuXmv", "nuxmv")
_NAMED: Final = re.compile(r"^\s*(?:INVAR|CTL|LTL)?SPEC\s+NAME\s+([\w$#-]+)\s*:=", re.MULTILINE)
_TOLD: Final = re.compile(r"^\s*\[\s*\w+\s+(True|False|Unchecked)\s.*?([\w$#-]+)\s*\]\s*$", re.MULTILINE)


def find() -> Path | None:
    """Where NuSMV or nuXmv is, if one is on the PATH."""
    found = next(filter(None, map(shutil.which, NAMES)), None)
    return None if found is None else Path(found).resolve()


def run(text: str, seconds: float = 60) -> list[bool | None]:
    """For each property that has a name in the text: is it true? None is for those not decided in this time."""
    checker = find()
    if checker is None:
        raise PipelineError(
            "smv_check.run(text)", needed=f"one of {', '.join(NAMES)} on the PATH", came="none", hint="smv_check.find()"
        )
    names = _NAMED.findall(text)
    with tempfile.TemporaryDirectory(prefix="streamtight-smv-") as folder:
        model, script = Path(folder, "model.smv"), Path(folder, "script")
        model.write_text(text + "\n", encoding="utf-8")
        asked = [line for name in names for line in (f"check_property -P {name}", f"show_property -P {name}")]
        script.write_text("\n".join(["set on_failure_script_quits 1", "go", *asked, "quit", ""]), encoding="utf-8")
        command = [str(checker), "-dcx", "-source", script.name, model.name]
        # Files and no pipes: what was said before a process was ended can be read, and nothing waits for a pipe.
        said, complained = Path(folder, "said"), Path(folder, "complained")
        with said.open("wb") as out, complained.open("wb") as errors:
            process = subprocess.Popen(  # noqa: S603 - the user's own checker
                command, stdin=subprocess.DEVNULL, stdout=out, stderr=errors, cwd=folder
            )
            try:
                is_over = process.wait(seconds) is not None
            except subprocess.TimeoutExpired:
                is_over = False
            finally:
                process.kill()
                process.wait()
        answers = dict(_answers(said.read_text(encoding="utf-8", errors="replace")))
        if is_over and (process.returncode or any(name not in answers for name in names)):
            complaint = complained.read_text(encoding="utf-8", errors="replace").strip()
            raise EncodingError(
                checker.name,
                needed="an answer for each property",
                came=complaint.splitlines()[0] if complaint else f"it ended with {process.returncode}",
                hint="please report the text: smv_text(...)",
            )
    return [answers.get(name) for name in names]


def _answers(said: str) -> list[tuple[str, bool | None]]:
    return [(name, {"True": True, "False": False}.get(told)) for told, name in _TOLD.findall(said)]
