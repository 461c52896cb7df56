"""What a plain YAML scalar says, and which ones are surprises."""

import pytest

from adjudge.policy._reading.scalars import read_plain


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("null", None),
        ("true", True),
        ("False", False),
        ("0", 0),
        ("-12", -12),
        ("1.10", 1.1),
        ("-0.5", -0.5),
        ("1.5e+3", 1500.0),
        ("prod", "prod"),
        ("a b", "a b"),
        ("10.0.0.1", "10.0.0.1"),
        ("1.2.3", "1.2.3"),
        ("v1", "v1"),
        ("-", "-"),
        ("+", "+"),
        (".", "."),
        ("e5", "e5"),
        ("None", "None"),
        ("norway", "norway"),
        ("12 apples", "12 apples"),
        ("2024-01", "2024-01"),
        ("12:99", "12:99"),
    ],
)
def test_what_every_reader_reads_alike_is_taken_at_its_word(text, value):
    """A scalar on which YAML 1.1, YAML 1.2 and JSON agree is no surprise."""
    found, surprise = read_plain(text)

    assert (value, type(value), None) == (found, type(found), surprise)


@pytest.mark.parametrize(
    ("text", "instead"),
    [
        ("no", '"no" or false'),
        ("Yes", '"Yes" or true'),
        ("ON", '"ON" or true'),
        ("off", '"off" or false'),
        ("y", '"y" or true'),
        ("n", '"n" or false'),
        ("~", '"~" or null'),
        ("", "null"),
        ("0123", '"0123"'),
        ("0o17", '"0o17"'),
        ("0x1F", '31 or "0x1F"'),
        ("0b11", '"0b11"'),
        ("1e3", '1000 or "1e3"'),
        ("1E+3", '1000 or "1E+3"'),
        ("1.0e3", '1000 or "1.0e3"'),
        ("1.5e-3", None),
        ("695e0514", '"695e0514"'),
        ("1_000", '1000 or "1_000"'),
        ("1,000", '1000 or "1,000"'),
        ("1,000.50", '1000.50 or "1,000.50"'),
        (".5", '0.5 or ".5"'),
        ("5.", '"5."'),
        ("+5", '5 or "+5"'),
        ("12:30", '"12:30"'),
        ("1:30:00.5", '"1:30:00.5"'),
        (".inf", '".inf"'),
        ("-.INF", '"-.INF"'),
        (".NaN", '".NaN"'),
        ("Infinity", '"Infinity"'),
        ("2024-01-01", '"2024-01-01"'),
        ("2024-1-1 10:00:00", '"2024-1-1 10:00:00"'),
        ("=", '"="'),
        ("<<", '"<<"'),
        ("9" * 5000, "digits"),
    ],
)
def test_a_surprise_says_what_to_write_instead(text, instead):
    """Text that some reader takes for something else comes with how to write what is meant."""
    _, surprise = read_plain(text)

    if instead is None:
        assert surprise is None
    else:
        assert instead in surprise


@pytest.mark.parametrize("text", ["1e400", "1e99999999"])
def test_a_number_beyond_all_numbers_is_a_surprise_and_no_crash(text):
    """An exponent that overflows is refused like any other doubtful number."""
    assert f'"{text}"' in read_plain(text)[1]
