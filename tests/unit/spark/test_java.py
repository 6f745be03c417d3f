from __future__ import annotations

from pathlib import Path

import pytest

from headwater.errors import JavaMissing
from headwater.spark import java


def install(home: Path, version: str, *, modules: tuple[str, ...] = (java.NEEDED_MODULE,)) -> Path:
    """Write a program that answers like a Java of this version, installed in `home`."""
    program = home / "bin" / "java"
    program.parent.mkdir(parents=True)
    listing = "\n".join(f"{name}@{version}" for name in ("java.base", *modules))
    program.write_text(
        f"""#!/bin/sh
if [ "$1" = --list-modules ]; then
cat <<'END'
{listing}
END
else
cat >&2 <<'END'
    java.home = {home}
    java.specification.version = {version}
END
fi
"""
    )
    program.chmod(0o755)
    return home


@pytest.fixture(autouse=True)
def empty_machine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("JAVA_HOME", raising=False)
    monkeypatch.setattr(java, "WELL_KNOWN", (f"{tmp_path}/jvm/*",))
    (tmp_path / "bin").mkdir()
    (tmp_path / "bin" / "cat").symlink_to("/bin/cat")
    monkeypatch.setenv("PATH", str(tmp_path / "bin"))


def put_on_path(home: Path, tmp_path: Path) -> None:
    (tmp_path / "bin" / "java").symlink_to(home / "bin" / "java")


def test_java_home_comes_before_path(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    put_on_path(install(tmp_path / "a", "17"), tmp_path)
    monkeypatch.setenv("JAVA_HOME", str(install(tmp_path / "with space", "21")))
    assert java.find_java() == tmp_path / "with space"


def test_an_old_java_home_gives_way_to_path(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    put_on_path(install(tmp_path / "new", "17"), tmp_path)
    monkeypatch.setenv("JAVA_HOME", str(install(tmp_path / "old", "11")))
    assert java.find_java() == tmp_path / "new"


def test_a_link_on_path_leads_to_the_real_home(tmp_path: Path) -> None:
    put_on_path(install(tmp_path / "real", "21"), tmp_path)
    assert java.find_java() == tmp_path / "real"


def test_well_known_folders_come_last(tmp_path: Path) -> None:
    assert install(tmp_path / "jvm" / "java-17", "17") == java.find_java()


def test_a_runtime_without_the_needed_module_is_passed_over(tmp_path: Path) -> None:
    install(tmp_path / "jvm" / "a-trimmed", "25", modules=())
    assert install(tmp_path / "jvm" / "b-whole", "17") == java.find_java()


def test_the_error_names_every_java_found_and_the_way_out(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    install(tmp_path / "jvm" / "java-8", "1.8", modules=())
    install(tmp_path / "jvm" / "trimmed", "25", modules=())
    monkeypatch.setenv("JAVA_HOME", str(tmp_path / "nothing"))
    with pytest.raises(JavaMissing) as missing:
        java.find_java()
    assert missing.value.found == (
        f"{tmp_path}/nothing/bin/java does not run",
        f"Java 8 at {tmp_path}/jvm/java-8 is too old",
        f"Java 25 at {tmp_path}/jvm/trimmed lacks the module jdk.incubator.vector",
    )
    assert "openjdk-17-jre-headless" in str(missing.value)


def test_the_error_says_when_there_is_none_at_all() -> None:
    with pytest.raises(JavaMissing, match="found none"):
        java.find_java()
