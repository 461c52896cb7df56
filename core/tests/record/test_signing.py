"""Signing: what is signed, what is not, and with which keys."""

from __future__ import annotations

import pickle
import resource
import stat
from pathlib import Path

import pytest

from adjudge import RecordError, new_signing_key, sign_checkpoint, verify_chain
from adjudge._record.signing import PublicKeys, Signer
from adjudge._record.vouching import UnsoundRecord

pytestmark = pytest.mark.needs_extra

# openssl genpkey -algorithm ed25519; openssl pkey -pubout
OPENSSL_KEY = b"""\
-----BEGIN PRIVATE KEY-----
MC4CAQAwBQYDK2VwBCIEILbBZycuioyFYiN/TRE4jzTX7FE0MUXMVmmNJcwLM++U
-----END PRIVATE KEY-----
"""
OPENSSL_PUBLIC_KEY = b"""\
-----BEGIN PUBLIC KEY-----
MCowBQYDK2VwAyEAS1EEDl+kIhn9jH1XiD2JC1vclJ3q96H2Ar1kHj9IjaQ=
-----END PUBLIC KEY-----
"""


def cut(record, lines):
    """Leave only the first lines of a record."""
    record.write_bytes(b"".join(record.read_bytes().splitlines(keepends=True)[:lines]))


def test_a_key_from_openssl_signs_and_verifies(written, kept):
    """What `openssl genpkey` and `openssl pkey -pubout` write is read as it is."""
    sign_checkpoint(written, OPENSSL_KEY, output=kept)

    assert verify_chain(written, public_key=OPENSSL_PUBLIC_KEY).intact


def test_a_broken_record_is_not_signed(key, written, kept):
    """Nobody vouches for what is not sound, and the error has the result."""
    written.write_bytes(written.read_bytes().replace(b'"seq":2', b'"seq":9'))
    with pytest.raises(UnsoundRecord) as caught:
        sign_checkpoint(written, key, output=kept)

    assert ("hash_mismatch", 3) == (caught.value.result.code, caught.value.result.broken_at)
    assert str(written) in str(caught.value)
    assert not kept.exists()
    assert caught.value.result == pickle.loads(pickle.dumps(caught.value)).result


def test_an_empty_record_is_not_signed(key, record):
    """Nothing checked is not good."""
    record.touch()
    with pytest.raises(UnsoundRecord):
        sign_checkpoint(record, key)


def test_a_record_that_was_cut_since_it_was_signed_is_not_signed_again(key, written, kept):
    """Else the next run of the job would vouch for the cut one."""
    sign_checkpoint(written, key, output=kept)
    cut(written, 3)
    before = kept.read_bytes()
    with pytest.raises(UnsoundRecord) as caught:
        sign_checkpoint(written, key, output=kept)

    assert "tail_cut" == caught.value.result.code
    assert before == kept.read_bytes()


def test_another_keys_checkpoints_do_not_hinder_signing(key, other, written, kept):
    """A key that is replaced begins where the last one ended."""
    sign_checkpoint(written, other, output=kept)
    sign_checkpoint(written, key, output=kept)

    assert 2 == len(kept.read_text().splitlines())


def test_nonsense_among_the_checkpoints_hinders_signing(key, written, kept):
    """Somebody should look at it first."""
    kept.write_text("hello\n")
    with pytest.raises(UnsoundRecord) as caught:
        sign_checkpoint(written, key, output=kept)

    assert "not_a_checkpoint" == caught.value.result.code


def test_a_checkpoint_begins_its_own_line(key, other, written, kept):
    """A last line without its end is not run into."""
    kept.write_text(sign_checkpoint(written, other).line.rstrip())
    sign_checkpoint(written, key, output=kept)

    assert verify_chain(written, public_key=[f"{key}.pub", f"{other}.pub"]).intact


def test_checkpoints_without_a_key_are_bad_usage(written, kept):
    """Nobody can check a signature without the key of who signed."""
    kept.touch()
    with pytest.raises(RecordError):
        verify_chain(written, checkpoints=kept)


def test_a_new_key_is_for_its_owner_alone(tmp_path):
    """The private file has mode 0600 and PKCS #8; its fingerprint is that of the public one."""
    path = tmp_path / "k.pem"
    fingerprint = new_signing_key(path)

    assert 0o600 == stat.S_IMODE(path.stat().st_mode)
    assert path.read_text().startswith("-----BEGIN PRIVATE KEY-----")
    assert fingerprint == Signer(path).fingerprint
    assert PublicKeys.read(f"{path}.pub").knows(fingerprint)


@pytest.mark.parametrize("there", ["k.pem", "k.pem.pub"])
def test_a_new_key_overwrites_nothing(tmp_path, there):
    """Neither half of an old one is lost, and no half of a new one is left."""
    (tmp_path / there).write_text("mine")
    with pytest.raises(RecordError, match=there):
        new_signing_key(tmp_path / "k.pem")

    assert ["mine"] == [path.read_text() for path in tmp_path.iterdir()]


def pem(kind, password=None):
    """A private key of another kind, or with a passphrase, and its public half."""
    from cryptography.hazmat.primitives.asymmetric import ec, ed25519
    from cryptography.hazmat.primitives.serialization import (
        BestAvailableEncryption,
        Encoding,
        NoEncryption,
        PrivateFormat,
        PublicFormat,
    )

    key = (
        ec.generate_private_key(ec.SECP256R1())
        if kind == "ec"
        else ed25519.Ed25519PrivateKey.generate()
    )
    locked = BestAvailableEncryption(password) if password else NoEncryption()
    return (
        key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, locked),
        key.public_key().public_bytes(Encoding.PEM, PublicFormat.SubjectPublicKeyInfo),
    )


def test_a_key_may_be_given_as_bytes(written, kept):
    """A key from a secret store need not be in a file."""
    private, shown = pem("ed25519")
    sign_checkpoint(written, private, output=kept)

    assert verify_chain(written, public_key=shown).intact


@pytest.mark.parametrize(
    ("make", "said"),
    [
        (lambda: pem("ed25519", b"secret")[0], "passphrase"),
        (lambda: pem("ec")[0], "another kind"),
        (lambda: pem("ed25519")[1], "no private key"),
        (lambda: b"", "no private key"),
        (lambda: b"-----BEGIN PRIVATE KEY-----\nAAAA\n-----END PRIVATE KEY-----\n", "no private"),
        (lambda: "-----BEGIN PRIVATE KEY-----\nAAAA", "bytes"),
        (lambda: "/nowhere/key.pem", "/nowhere/key.pem cannot be read"),
    ],
    ids=["locked", "another kind", "public", "empty", "broken", "text", "missing"],
)
def test_a_key_that_cannot_sign_is_an_error_that_says_why(written, make, said):
    """And that shows nothing of it."""
    with pytest.raises(RecordError, match=said) as caught:
        sign_checkpoint(written, make())

    assert "AAAA" not in str(caught.value)


@pytest.mark.parametrize(
    ("make", "said"),
    [
        (lambda: pem("ec")[1], "another kind"),
        (lambda: pem("ed25519")[0], r"private key.*\.pub"),
        (lambda: b"hello", "no public key"),
        (lambda: Path("/nowhere/key.pub"), "/nowhere/key.pub cannot be read"),
    ],
    ids=["another kind", "private", "nonsense", "missing"],
)
def test_a_key_that_cannot_verify_is_an_error_that_says_why(written, make, said):
    """A private key is not taken for its public half."""
    with pytest.raises(RecordError, match=said):
        verify_chain(written, public_key=make())


@pytest.mark.parametrize(
    "text",
    [
        OPENSSL_KEY.decode(),
        OPENSSL_KEY.decode().splitlines()[1],
        OPENSSL_KEY.decode().replace("-----BEGIN PRIVATE KEY-----\n", ""),
        OPENSSL_KEY.decode().lower(),
        "b6c16727" * 8,
        "tsFnJy6KjIViI39NETiPNNfsUTQxRcxWaY0lzAsz75Q=",
    ],
    ids=["PEM", "its base64", "without a head", "in small letters", "in digits", "the seed"],
)
def test_a_key_that_is_given_as_text_is_not_repeated(written, text):
    """Neither in the error, nor in the one that the system gave."""
    for use in (sign_checkpoint, lambda path, key: verify_chain(path, public_key=key)):
        with pytest.raises(RecordError, match="bytes of PEM") as caught:
            use(written, text)

        assert not [line for line in text.splitlines() if line in str(caught.value)]
        assert None is caught.value.__context__


def test_half_a_key_is_not_left(tmp_path):
    """A full disk leaves neither file, so the next attempt finds nothing in its way."""
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    for room in (50, 115):  # less than the public half; less than the private one
        resource.setrlimit(resource.RLIMIT_FSIZE, (room, hard))
        try:
            with pytest.raises(RecordError, match="cannot be written"):
                new_signing_key(tmp_path / "k.pem")
        finally:
            resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))

        assert [] == list(tmp_path.iterdir())
