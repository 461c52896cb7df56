"""Secrets are taken out of events before any sink sees them, at any depth."""

from __future__ import annotations

import json
import logging
import time
from decimal import Decimal
from types import MappingProxyType

import pytest
from hypothesis import given
from hypothesis import strategies as st

from adjudge._record.format import PlainDict, record_line, to_json
from adjudge._record.redaction import REDACTED, apply_redactor, default_redactor, no_redaction
from adjudge._record.secrets import is_secret_name, redact_text
from adjudge._values import FrozenDict, FrozenList, digest, freeze, freeze_object

SECRETS = ("s3cr3t-a", "s3cr3t-b", "s3cr3t-c", "s3cr3t-d", "s3cr3t-e", "s3cr3t-f")


@pytest.fixture
def body():
    """A body with a secret in each of the places where one hides."""
    a, b, c, d, e, f = SECRETS
    return freeze_object(
        {
            "tool": "fetch",
            "args": {
                "config": {"auth": {"Authorization": f"Bearer {a}"}},
                "list": [{"api_key": b}],
                "X-Api-Key": c,
                "url": f"https://user:{d}@host/path?token={e}&page=2",
                "body": f"password={f}",
                "amount": 7,
            },
        }
    )


def test_no_secret_stays_at_any_depth(body):
    """Keys, URLs and free text, in objects and lists: none of the values is left."""
    text = json.dumps(default_redactor()(body))

    assert [] == [secret for secret in SECRETS if secret in text]


def test_structure_and_harmless_values_stay(body):
    """The keys, the lists and all that is no secret are as they were."""
    expected = {
        "config": {"auth": {"Authorization": REDACTED}},
        "list": [{"api_key": REDACTED}],
        "X-Api-Key": REDACTED,
        "url": f"https://{REDACTED}@host/path?token={REDACTED}&page=2",
        "body": f"password={REDACTED}",
        "amount": 7,
    }

    assert expected == default_redactor()(body)["args"]


def test_what_is_executed_is_not_touched(body):
    """The body that was given is the same afterwards."""
    before = json.dumps(body)
    default_redactor()(body)

    assert before == json.dumps(body)


def test_the_digest_of_the_original_arguments_is_left(body):
    """Whoever has the arguments can show that they are the ones."""
    assert digest(body["args"]) == default_redactor()(body)["args_digest"]
    assert "args_digest" not in default_redactor(digests=False)(body)
    assert "args_digest" not in default_redactor()({"args": {"amount": 7}})


@pytest.mark.parametrize("field", ["effective_args", "edited_args", "preview", "injected", "given"])
def test_every_field_of_an_event_is_redacted(field):
    """A transform's result, an edit and a preview are redacted as the arguments are."""
    assert {"password": REDACTED} == default_redactor()({field: {"password": "x"}})[field]


@pytest.mark.parametrize("field", ["reason", "error", "arguments_text"])
def test_text_of_an_event_is_redacted(field):
    """Reasons, errors and refused argument text are free text, and searched."""
    said = default_redactor()({field: 'refused {"password": "hunter2"} at https://u:p@h/'})[field]

    assert f'refused {{"password": "{REDACTED}"}} at https://{REDACTED}@h/' == said


@pytest.mark.parametrize(
    "name",
    [
        "password",
        "Password",
        "db_password",
        "dbPassword",
        "DBPASSWORD",
        "passwd",
        "pwd",
        "passphrase",
        "secret",
        "clientSecret",
        "client-secret",
        "token",
        "accessToken",
        "AUTH_TOKEN",
        "authtoken",
        "api_key",
        "apikey",
        "apiKey",
        "X-Api-Key",
        "x-api-key",
        "APIKey",
        "access_key",
        "private_key",
        "privateKey",
        "ssh_key",
        "signing-key",
        "Authorization",
        "Proxy-Authorization",
        "Cookie",
        "Set-Cookie",
        "credential",
        "credentials",
        "otp",
        "cvv",
        "pin",
        "secretAccessKey",
        "aws_secret_access_key",
    ],
)
def test_a_secret_name_in_any_spelling(name):
    """Names are read as words, however they are written."""
    assert is_secret_name(name, "x")


@pytest.mark.parametrize(
    "name",
    [
        "author",
        "authority",
        "key",
        "keyboard",
        "path",
        "tokenizer",
        "secretary",
        "passage",
        "pinned",
        "compass",
        "cookiecutter",
        "monkey",
        "keys",
        "primary_key",
        "foreign_key",
        "sort_key",
        "user",
        "amount",
    ],
)
def test_a_harmless_name(name):
    """A name that only contains such a word by chance is none."""
    assert not is_secret_name(name, "x")


@pytest.mark.parametrize("name", ["max_tokens", "tokens", "token_count", "total_tokens"])
def test_a_number_of_tokens_is_no_token(name):
    """A count is told from a secret by its kind."""
    assert not is_secret_name(name, 100)
    assert is_secret_name(name, "abc")


def test_a_secret_number_is_taken_out_and_a_flag_stays():
    """Under a secret name numbers go; null and booleans say nothing."""
    args = {"pin": 1234, "password": True, "token": None, "secret": {"a": [1, "x", None]}}

    assert {
        "pin": REDACTED,
        "password": True,
        "token": None,
        "secret": {"a": [REDACTED, REDACTED, None]},
    } == default_redactor(digests=False)(args)


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        ([["Authorization", "abc"]], [["Authorization", REDACTED]]),
        ([{"name": "Cookie", "value": "a"}], [{"name": "Cookie", "value": REDACTED}]),
        (["curl", "--token", "abc", "x"], ["curl", "--token", REDACTED, "x"]),
        (["-H", "X-Api-Key: abc"], ["-H", f"X-Api-Key: {REDACTED}"]),
        ({"auth": ["user", "abc"]}, {"auth": [REDACTED, REDACTED]}),
        (("Bearer abc",), [f"Bearer {REDACTED}"]),
    ],
)
def test_headers_and_command_lines_as_they_are_often_written(value, expected):
    """Pairs, name-and-value objects and flags are read as what they are."""
    assert expected == default_redactor()({"x": value})["x"]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("Authorization: Bearer abc.def", "Authorization: [redacted]"),
        ("Authorization: Digest a=b, c=d\nHost: h", "Authorization: [redacted]\nHost: h"),
        ("Cookie: a=b; c=d", "Cookie: [redacted]"),
        ("it sent Bearer abc and left", "it sent Bearer [redacted] and left"),
        ("Basic dXNlcjpwYXNz", "Basic [redacted]"),
        ("a basic understanding", "a basic understanding"),
        (r'{"password": "a\"b", "x": 1}', '{"password": "[redacted]", "x": 1}'),
        (r"{\"api_key\": \"k\", \"y\": 2}", r"{\"api_key\": \"[redacted]\", \"y\": 2}"),
        ('"credentials": {"user": ["x"]} rest', '"credentials": [redacted] rest'),
        ("token='x y' ok", "token='[redacted]' ok"),
        ("--password hunter2 -v", "--password [redacted] -v"),
        ("PGPASSWORD=abc psql", "PGPASSWORD=[redacted] psql"),
        ("max_tokens=100", "max_tokens=100"),
        ("token=123456", "token=[redacted]"),
        ("password: 'unclosed", "password: '[redacted]"),
        ("postgres://u:p@ss@h/db", "postgres://[redacted]@h/db"),
        ("https://host/a@b", "https://host/a@b"),
        ("key AKIAABCDEFGHIJKLMNOP.", "key [redacted]."),
        ("ghp_abcdefghijklmnopqrstuvwxyz", "[redacted]"),
        ("eyJhbGciOiJI.eyJzdWIi.c2ln", "[redacted]"),
        ("-----BEGIN RSA PRIVATE KEY-----\nabc\n-----END RSA PRIVATE KEY----- x", "[redacted] x"),
        ("-----BEGIN PRIVATE KEY-----\nabc", "[redacted]"),
        ("nothing to see: here", "nothing to see: here"),
    ],
)
def test_text(text, expected):
    """What free text shows of a secret is taken out, and the rest stays."""
    assert expected == redact_text(text)


@pytest.mark.parametrize(
    "piece",
    ["a", "://", "password=", "-----BEGIN RSA PRIVATE KEY-----", '"password":{', "x: ", "a.",
     'secret="', "token=\\", "bearer ", "eyJaaaaaaaaa.", 'password="\\\\', "--"],
)  # fmt: skip
def test_the_time_is_linear_in_the_text(piece):
    """No text makes the redaction slow: four times the text takes about four times as long."""

    def seconds(size):
        text = piece * (size // len(piece))
        started = time.process_time()
        redact_text(text)
        return time.process_time() - started

    seconds(1000)
    small = min(seconds(20_000) for _ in range(3))
    large = min(seconds(80_000) for _ in range(3))

    assert large < 12 * small + 0.01


def test_custom_names_and_exceptions():
    """Names can be added, in any spelling, and taken from the list."""
    redact = default_redactor(names=["ssn", "X-Internal"], allow_names=["token"], digests=False)
    args = {"SSN": "1", "xInternal": "2", "token": "3", "nested": [{"ssn": {"a": "4"}}]}

    assert {
        "SSN": REDACTED,
        "xInternal": REDACTED,
        "token": "3",
        "nested": [{"ssn": {"a": REDACTED}}],
    } == redact(args)


def test_custom_paths():
    """Paths take out one place, every index, every key, and hold for rewritten arguments too."""
    redact = default_redactor(
        paths=["args.card.number", "args.items[*].code", 'args["a.b"]', "args.list[1]", "args.m.*"],
        digests=False,
    )
    args = {
        "card": {"number": "1", "name": "ada"},
        "items": [{"code": "2", "id": 5}, {"code": "3"}],
        "a.b": "4",
        "list": ["keep", "5"],
        "m": {"x": "6", "y": ["7"]},
    }
    expected = {
        "card": {"number": REDACTED, "name": "ada"},
        "items": [{"code": REDACTED, "id": 5}, {"code": REDACTED}],
        "a.b": REDACTED,
        "list": ["keep", REDACTED],
        "m": {"x": REDACTED, "y": [REDACTED]},
    }

    assert {"args": expected, "effective_args": expected} == redact(
        {"args": args, "effective_args": args}
    )


@pytest.mark.parametrize("path", ["", "args[", "args..x", "args[x]", ".args", "args."])
def test_a_path_that_is_none_is_refused(path):
    """A mistyped path must not silently protect nothing."""
    with pytest.raises(ValueError, match="path"):
        default_redactor(paths=[path])


def test_bottomless_nesting_is_cut():
    """A redactor neither fails on a deep value nor lets it through unread."""
    deep = "password=abc"
    for _ in range(5000):
        deep = [deep]

    assert "abc" not in str(default_redactor()({"x": deep}))[:5000]


def test_any_mapping_is_read():
    """A body need not be a dict."""
    assert (
        REDACTED
        == default_redactor()(MappingProxyType({"a": MappingProxyType({"pwd": "x"})}))["a"]["pwd"]
    )


def test_no_redaction_leaves_all():
    """Whoever wants everything in the record says so."""
    assert {"password": "x"} == no_redaction({"password": "x"})


@pytest.mark.parametrize("answer", [ValueError("password=abc"), None, "text"])
def test_a_redactor_that_fails_lets_nothing_through(answer, caplog):
    """Law 4: where redaction fails the body is left out, and its error text is not repeated."""

    def broken(body):
        if isinstance(answer, Exception):
            raise answer
        return answer

    result = apply_redactor(broken, {"password": "abc"})

    assert {"redaction_failed"} == set(result)
    assert "abc" not in str(result) + caplog.text
    assert [logging.ERROR] == [line.levelno for line in caplog.records]


def test_a_base_exception_of_a_redactor_goes_through():
    """What is no Exception is not swallowed."""

    def stops(body):
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        apply_redactor(stops, {})


@pytest.mark.parametrize("setting", ["names", "paths", "allow_names"])
def test_a_text_in_place_of_a_list_is_refused(setting):
    """Taken letter by letter, `names="ssn"` would take nothing out of the record."""
    with pytest.raises(TypeError, match=rf"{setting} is the text 'ssn'; write \['ssn'\]"):
        default_redactor(**{setting: "ssn"})


NAMES = st.sampled_from(
    ["text", "amount", "name", "value", "header", "password", "apiKey", "max_tokens", "auth", "ssn"]
)
TEXTS = st.sampled_from(
    [
        "",
        "plain",
        "two words",
        "--token",
        "Authorization",
        "a=b",
        "token=t0p",
        "sk-0123456789abcdefgh",
    ]
)
BODIES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | TEXTS,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(NAMES, inner, max_size=3),
    max_leaves=8,
)


@given(st.dictionaries(NAMES, BODIES, max_size=3))
def test_what_is_frozen_is_redacted_as_what_is_not(body):
    """A body that is looked through quickly loses what one that is rebuilt does."""
    redact = default_redactor(names=["ssn"], digests=False)
    frozen = {name: freeze(value) for name, value in body.items() if _is_finite(value)}
    plain = {name: body[name] for name in frozen}

    assert apply_redactor(redact, frozen) == redact(plain) == apply_redactor(redact, plain)


def _is_finite(value):
    """Whether a value can be frozen."""
    return "Infinity" not in json.dumps(value)


@pytest.mark.parametrize(
    "args",
    [
        {"password": "x"},
        {"a": {"api_key": "x"}},
        {"a": [{"ssn": "x"}]},
        {"a": ["--password", "x"]},
        {"a": ["-pin", "x", "y"]},
        {"a": ["Authorization", "x"]},
        {"a": {"name": "Authorization", "value": "x"}},
        {"a": "token=x"},
        {"a": ["b", "c", "token=x"]},
    ],
)
def test_one_secret_among_frozen_arguments_is_found(args):
    """Nothing that hides a secret passes for a body that shows none."""
    redacted = apply_redactor(default_redactor(names=["ssn"]), {"args": freeze_object(args)})

    assert '"x"' not in json.dumps(redacted)
    assert "=x" not in json.dumps(redacted)


@pytest.mark.parametrize(
    "value",
    [float("inf"), float("nan"), pytest.param(10**5000, id="huge"), Decimal("1.10"), "\ud800"],
)
def test_what_has_a_form_of_its_own_is_left_to_the_record(value):
    """A number that JSON has not is no reason for a line that is no JSON."""
    shown = apply_redactor(default_redactor(), {"n": value})

    assert {"n": to_json(value)} == json.loads(record_line(to_json(shown)))


def test_a_redactor_keeps_no_secret_and_nothing_without_a_bound():
    """What it keeps to be quick is harmless and short, and of a bounded number."""
    redact = default_redactor()
    secret = {"note": FrozenDict({"text": "password=S3CRET"}), "long": "x" * 2000}
    for number in range(5000):
        apply_redactor(redact, {f"n{number}": f"t{number}", **secret, "y" * 2000: None})
        apply_redactor(redact, {f"n{number}": f"t{number}"})
    kept = {**redact._plain._starts, **redact._plain._texts}

    assert "S3CRET" not in str(kept)
    assert "x" * 2000 not in str(kept)
    assert "y" * 2000 not in str(kept)
    assert 0 < len(redact._plain._starts) <= 4096
    assert 0 < len(redact._plain._texts) <= 4096


@pytest.mark.parametrize(
    "value", [True, False, None, 1, -1.5, 1e300, 2**63, FrozenList([True, None, 1, FrozenDict()])]
)
def test_what_is_looked_through_has_its_text(value):
    """A body that shows nothing is written in its canonical form, its names in order."""
    body = FrozenDict({"b": value, "a b": value, "a": FrozenDict({"é": value, "d": "x"})})
    shown = apply_redactor(default_redactor(), body)

    written = shown.text if isinstance(shown, PlainDict) else record_line(to_json(shown))
    assert json.dumps(body, sort_keys=True, separators=(",", ":")) == written


def test_a_path_holds_for_what_is_frozen():
    """Where paths were given, no body passes for one that shows nothing."""
    redact = default_redactor(paths=["args.code"], digests=False)
    body = {"args": freeze_object({"code": "x1", "note": "n"})}

    assert {"args": {"code": REDACTED, "note": "n"}} == apply_redactor(redact, body)
