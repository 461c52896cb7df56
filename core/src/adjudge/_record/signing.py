"""Ed25519 keys: made, read and used, by `cryptography` (the `sign` extra).

This is the only file that imports it, and does so when a key is asked for. A private key is PEM
(PKCS #8), as OpenSSL writes it too; one with a passphrase is refused. Texts of errors hold nothing
of a key.
"""

from __future__ import annotations

import base64
import hashlib
import os
import re
from collections.abc import Iterable
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING

from adjudge._record.checkpoints import Checkpoint
from adjudge.errors import RecordError

if TYPE_CHECKING:
    from cryptography.hazmat.primitives.asymmetric.ed25519 import (
        Ed25519PrivateKey,
        Ed25519PublicKey,
    )

__all__ = ["Key", "PublicKeys", "Signer", "new_signing_key"]

# PEM, or base64 or hexadecimal digits as long as a key is.
_MAY_BE_A_KEY = re.compile(r"-----|[A-Za-z0-9+/=_-]{40}")

Key = str | os.PathLike[str] | bytes
"""A key in PEM: the path of a file, or the text itself as bytes."""


def new_signing_key(path: str | os.PathLike[str]) -> str:
    """Make a key: the private one at `path`, for its owner alone, the public one at `path`.pub.

    Gives the fingerprint. Raises `RecordError` for a file that is there already.
    """
    _need_cryptography()
    from cryptography.hazmat.primitives import serialization as forms
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

    key = Ed25519PrivateKey.generate()
    private = key.private_bytes(forms.Encoding.PEM, forms.PrivateFormat.PKCS8, forms.NoEncryption())
    public = key.public_key().public_bytes(
        forms.Encoding.PEM, forms.PublicFormat.SubjectPublicKeyInfo
    )
    _write_new(f"{os.fspath(path)}.pub", public, 0o644)
    try:
        _write_new(os.fspath(path), private, 0o600)
    except BaseException:
        Path(f"{os.fspath(path)}.pub").unlink()
        raise
    return _fingerprint(key.public_key())


class Signer:
    """A private key, which signs."""

    def __init__(self, key: Key) -> None:
        self._key = _private_key(key)
        self.keys = PublicKeys([self._key.public_key()])
        self.fingerprint = _fingerprint(self._key.public_key())

    def sign(self, head: str, records: int) -> Checkpoint:
        """Vouch for the first `records` records, now."""
        now = datetime.now(UTC).isoformat(timespec="seconds")
        checkpoint = Checkpoint(head, records, now, self.fingerprint)
        signature = self._key.sign(checkpoint.signed_bytes)
        return replace(checkpoint, signature=base64.b64encode(signature).decode("ascii"))


class PublicKeys:
    """The public keys whose signatures count."""

    def __init__(self, keys: Iterable[Ed25519PublicKey]) -> None:
        self._keys = {_fingerprint(key): key for key in keys}

    @classmethod
    def read(cls, keys: Key | Iterable[Key]) -> PublicKeys:
        """Read one key or several; raises `RecordError` for what is none."""
        several = [keys] if isinstance(keys, str | os.PathLike | bytes) else keys
        return cls(_public_key(key) for key in several)

    def knows(self, key: str) -> bool:
        """Whether the key with this fingerprint is one of them."""
        return key in self._keys

    def accepts(self, checkpoint: Checkpoint) -> bool:
        """Whether its signature is that of its key, which is one of them."""
        from cryptography.exceptions import InvalidSignature

        try:
            self._keys[checkpoint.key].verify(
                base64.b64decode(checkpoint.signature), checkpoint.signed_bytes
            )
        except (KeyError, InvalidSignature):
            return False
        return True


def _need_cryptography() -> None:
    try:
        import cryptography  # noqa: F401
    except ImportError:
        raise RecordError(
            "Checkpoints need cryptography, which is not installed: pip install 'adjudge[sign]'."
        ) from None


def _private_key(key: Key) -> Ed25519PrivateKey:
    _need_cryptography()
    from cryptography.exceptions import UnsupportedAlgorithm
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
    from cryptography.hazmat.primitives.serialization import load_pem_private_key

    name, text = _read(key)
    try:
        found = load_pem_private_key(text, password=None)
    except TypeError:
        raise RecordError(
            f"{name} has a passphrase; give a key without one, in a file that only the signer "
            "can read."
        ) from None
    except (ValueError, UnsupportedAlgorithm):
        raise RecordError(
            f"{name} is no private key in PEM (PKCS #8); make one with `adjudge checkpoint "
            "--new-key PATH` or `openssl genpkey -algorithm ed25519`."
        ) from None
    if not isinstance(found, Ed25519PrivateKey):
        raise _other_kind(name)
    return found


def _public_key(key: Key) -> Ed25519PublicKey:
    _need_cryptography()
    from cryptography.exceptions import UnsupportedAlgorithm
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey
    from cryptography.hazmat.primitives.serialization import load_pem_public_key

    name, text = _read(key)
    try:
        found = load_pem_public_key(text)
    except (ValueError, UnsupportedAlgorithm):
        hint = (
            "it is a private key, which who verifies must not have; give the .pub beside it"
            if b"PRIVATE KEY-----" in text
            else "`openssl pkey -in KEY.pem -pubout` makes one of a private key"
        )
        raise RecordError(f"{name} is no public key in PEM: {hint}.") from None
    if not isinstance(found, Ed25519PublicKey):
        raise _other_kind(name)
    return found


def _other_kind(name: str) -> RecordError:
    return RecordError(f"{name} is a key of another kind; checkpoints are signed with Ed25519.")


def _read(key: Key) -> tuple[str, bytes]:
    if isinstance(key, bytes):
        return "The key", key
    name = os.fspath(key)
    try:
        return name, Path(key).read_bytes()
    except (OSError, ValueError) as error:
        why = getattr(error, "strerror", None) or type(error).__name__
    # Outside of the handler: the system's error repeats the path, which may be the key itself.
    if _MAY_BE_A_KEY.search(name):
        name = "A key is given as the path of a file, or as bytes of PEM; what was given"
    raise RecordError(f"{name} cannot be read: {why}.")


def _fingerprint(key: Ed25519PublicKey) -> str:
    from cryptography.hazmat.primitives import serialization as forms

    der = key.public_bytes(forms.Encoding.DER, forms.PublicFormat.SubjectPublicKeyInfo)
    return hashlib.sha256(der).hexdigest()


def _write_new(path: str, data: bytes, mode: int) -> None:
    try:
        fd = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, mode)
        try:
            with os.fdopen(fd, "wb") as file:
                file.write(data)
        except BaseException:
            # Half a key is none, and would stand in the way of the next attempt.
            Path(path).unlink()
            raise
    except OSError as error:
        raise RecordError(f"{path} cannot be written: {error.strerror or error}.") from error
