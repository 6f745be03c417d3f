"""A PostgreSQL server of our own for tests: found on this machine, or unpacked from Debian's packages into a cache.

Nothing is installed and nothing of the machine's own PostgreSQL is used but its programs. As root, the server runs as
another user, because it refuses to run as root.
"""

from __future__ import annotations

import os
import pwd
import re
import secrets
import shutil
import signal
import subprocess
import tempfile
import time
from pathlib import Path

from tests.parts.ports import free_port

USER = "headwater"
_START_S = 60
"""How long a server may take to answer on a busy machine."""
_ALWAYS_THERE = re.compile(r"libc6|libllvm.*|libperl.*|libjson.*|libio.*|libipc.*")
"""Of what PostgreSQL depends on: the C library is on every Debian, the others are for compiled queries and for scripts."""


class PostgresServer:
    """One server on loopback, in a folder of its own; `conninfo` connects to it as its owner, with a password."""

    def __init__(self) -> None:
        self._programs, self._libraries = find_programs()
        self._folder = Path(tempfile.mkdtemp(prefix="headwater-postgres-"))
        self._user = _other_user()
        self.password = secrets.token_hex(16)
        self.port = free_port()
        self._process: subprocess.Popen[bytes] | None = None
        self._create()

    @property
    def conninfo(self) -> str:
        """How to connect."""
        return f"host=127.0.0.1 port={self.port} dbname=postgres user={USER} password={self.password}"

    @property
    def pid(self) -> int:
        """The process; the server must be running."""
        assert self._process is not None
        return self._process.pid

    @property
    def folder(self) -> Path:
        """Where its data and its log are."""
        return self._folder

    def start(self) -> None:
        """Start the server and wait until it answers."""
        import psycopg

        settings = {
            "listen_addresses": "127.0.0.1",
            "port": self.port,
            "unix_socket_directories": "",
            "fsync": "off",  # nothing here must survive the machine
            "max_connections": 40,
        }
        arguments = [word for name, value in settings.items() for word in ("-c", f"{name}={value}")]
        log = self._folder / "log"
        with log.open("ab") as out:
            self._process = self._popen("postgres", "-D", str(self._data), *arguments, output=out)
        deadline = time.monotonic() + _START_S
        while True:
            try:
                psycopg.connect(self.conninfo, connect_timeout=5).close()
            except psycopg.OperationalError as error:
                if self._process.poll() is not None or time.monotonic() > deadline:
                    self.stop()
                    raise RuntimeError(f"PostgreSQL did not start: {error}\n{log.read_text()[-2000:]}") from None
                time.sleep(0.05)
            else:
                return

    def stop(self) -> None:
        """Stop the server without waiting for its clients; its data stays."""
        process, self._process = self._process, None
        if process is not None:
            process.send_signal(signal.SIGINT)
            process.wait(_START_S)

    def remove(self) -> None:
        """Stop the server and remove its data."""
        self.stop()
        shutil.rmtree(self._folder)

    def run(self, *statements: str) -> None:
        """Run statements, each committed by itself."""
        import psycopg

        with psycopg.connect(self.conninfo, autocommit=True) as connection:
            for statement in statements:
                connection.execute(statement.encode())

    @property
    def _data(self) -> Path:
        return self._folder / "data"

    def _create(self) -> None:
        password = self._folder / "password"
        password.write_text(self.password)
        if self._user is not None:
            for path in (self._folder, password):
                os.chown(path, self._user, -1)
        options = ["--no-locale", "--encoding=UTF8", "--no-sync", "--auth=scram-sha-256"]
        named = [f"--username={USER}", f"--pwfile={password}", f"--pgdata={self._data}"]
        process = self._popen("initdb", *options, *named, output=subprocess.PIPE)
        said, _ = process.communicate()
        if process.returncode != 0:
            raise RuntimeError(f"initdb failed:\n{said.decode()}")

    def _popen(self, program: str, *arguments: str, output: object) -> subprocess.Popen[bytes]:
        environment = {"PATH": os.defpath, "LC_ALL": "C", "HOME": str(self._folder)}
        if self._libraries:
            environment["LD_LIBRARY_PATH"] = ":".join(map(str, self._libraries))
        return subprocess.Popen(
            [self._programs / program, *arguments],
            env=environment,
            cwd=self._folder,
            stdin=subprocess.DEVNULL,
            stdout=output,  # type: ignore[arg-type]
            stderr=subprocess.STDOUT,
            user=self._user,
            group=None if self._user is None else pwd.getpwuid(self._user).pw_gid,
            extra_groups=None if self._user is None else [],
        )


def find_programs() -> tuple[Path, list[Path]]:
    """The folder of PostgreSQL's programs, and folders of libraries they need besides the machine's."""
    on_path = shutil.which("postgres")
    found = [Path(on_path).resolve().parent] if on_path else []
    found += sorted(Path("/usr/lib/postgresql").glob("*/bin"), key=lambda path: float(path.parent.name), reverse=True)
    for folder in found:
        if (folder / "initdb").exists() and (folder / "postgres").exists():
            return folder, []
    return unpack(_cache())


def unpack(cache: Path) -> tuple[Path, list[Path]]:
    """The same out of Debian's packages, which are fetched once and unpacked into a folder."""
    unpacked = cache / "unpacked"
    if not unpacked.exists():
        cache.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(dir=cache) as folder:
            made = Path(folder) / "made"
            for package in _fetch(Path(folder)):
                subprocess.run(["dpkg", "-x", package, made], check=True)
            Path(folder).chmod(0o755)
            made.rename(unpacked)
    (programs,) = unpacked.glob("usr/lib/postgresql/*/bin")
    return programs, sorted([*unpacked.glob("usr/lib/*-linux-gnu*"), *unpacked.glob("lib/*-linux-gnu*")])


def _fetch(folder: Path) -> list[Path]:
    """Debian's PostgreSQL and those of its libraries that this machine lacks, fetched with package lists of our own."""
    if shutil.which("apt-get") is None:
        raise RuntimeError("these tests need PostgreSQL: put initdb and postgres on the PATH")
    places = {"State::Lists": folder / "lists", "Cache": folder / "cache"}
    for place in places.values():
        (place / "partial").mkdir(parents=True)
    options = [f"-oDir::{name}={place}/" for name, place in places.items()]
    options += ["-oAPT::Sandbox::User=root", "-oDebug::NoLocking=1", "-qq"]

    def apt(program: str, *arguments: str) -> str:
        done = subprocess.run([program, *options, *arguments], cwd=folder, capture_output=True, text=True, check=False)
        if done.returncode != 0:
            raise RuntimeError(f"{program} {' '.join(arguments)} failed:\n{done.stderr}")
        return done.stdout

    apt("apt-get", "update")
    (server,) = re.findall(r"Depends: (postgresql-\d+)$", apt("apt-cache", "depends", "postgresql"), re.MULTILINE)
    only = ["--no-recommends", "--no-suggests", "--no-conflicts", "--no-breaks", "--no-replaces", "--no-enhances"]
    needed = apt("apt-cache", "depends", "--recurse", *only, server)
    libraries = {name for name in re.findall(r"^(lib\S+)$", needed, re.MULTILINE) if not _ALWAYS_THERE.fullmatch(name)}
    missing = sorted(name for name in libraries if not _is_installed(name))
    apt("apt-get", "download", server, server.replace("-", "-client-"), *missing)
    return sorted(folder.glob("*.deb"))


def _is_installed(package: str) -> bool:
    query = ["dpkg-query", "--show", "--showformat=${db:Status-Status}", package]
    return subprocess.run(query, capture_output=True, text=True, check=False).stdout == "installed"


def _cache() -> Path:
    """A folder that lasts; as root one that other users can reach."""
    if os.geteuid() == 0:
        return Path("/var/cache/headwater/postgres")
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "headwater" / "postgres"


def _other_user() -> int | None:
    """Whom the server runs as: ourselves (None), but never root."""
    if os.geteuid() != 0:
        return None
    names = {entry.pw_name: entry.pw_uid for entry in pwd.getpwall()}
    return names.get("postgres", names["nobody"])
