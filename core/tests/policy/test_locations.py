"""Globs, directories and hosts (clause 12)."""

import re
import time

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from adjudge.policy._locations import (
    glob_matches,
    host_matches,
    host_pattern_problem,
    is_under,
    parse_host,
)


@pytest.mark.parametrize(
    ("pattern", "text", "expected"),
    [
        ("", "", True),
        ("", "a", False),
        ("a", "a", True),
        ("a", "A", False),
        ("*", "", True),
        ("*", "abc", True),
        ("*", "a/b", False),
        ("*", "a\nb", True),
        ("**", "a/b/c", True),
        ("***", "a/b", True),
        ("*.txt", "x.txt", True),
        ("*.txt", "a/x.txt", False),
        ("*.txt", "x.txt.exe", False),
        ("**/x", "a/b/x", True),
        ("**/x", "x", False),
        ("/etc/*", "/etc/passwd", True),
        ("/etc/*", "/etc/ssh/key", False),
        ("/etc/**", "/etc/ssh/key", True),
        ("a*b*c", "aXbYc", True),
        ("a*b*c", "abcb", False),
        ("*a", "aaab", False),
        ("a?c", "abc", False),
        ("a?c", "a?c", True),
        ("[ab]", "a", False),
        ("[ab]", "[ab]", True),
        ("a.c", "abc", False),
        ("a\\*", "a\\b", True),
    ],
)
def test_a_glob_matches_the_whole_text(pattern, text, expected):
    """Clause 12: `*` stops at a slash, `**` does not, all else is itself; all must match."""
    assert expected == glob_matches(pattern)(text)


@given(st.text("ab/*", max_size=8), st.text("ab/", max_size=10))
@settings(max_examples=300)
def test_a_glob_means_its_translation(pattern, text):
    """A glob agrees with the regular expression that spells it out."""
    pieces = re.split(r"(\*+)", pattern)
    spelt = "".join(
        ("[^/]*" if piece == "*" else ".*") if piece.startswith("*") else re.escape(piece)
        for piece in pieces
    )

    assert (re.fullmatch(spelt, text, re.DOTALL) is not None) == glob_matches(pattern)(text)


def test_a_glob_of_many_stars_takes_no_time_to_fail():
    """A glob's time grows with the text, not with the number of ways to match it."""
    matches = glob_matches("*a" * 30 + "b")
    before = time.perf_counter()

    assert not matches("a" * 20_000)
    assert time.perf_counter() - before < 5


@pytest.mark.parametrize(
    ("path", "directory", "expected"),
    [
        ("/srv/data", "/srv/data", True),
        ("/srv/data/x", "/srv/data", True),
        ("/srv/data/x", "/srv/data/", True),
        ("/srv/database", "/srv/data", False),
        ("/srv", "/srv/data", False),
        ("/srv/data", "/", True),
        ("/", "/", True),
        ("//srv/data/x", "/srv/data", True),
        ("/srv/data/x", "//srv/data", True),
        ("/SRV/data", "/srv/data", False),
    ],
)
def test_under_goes_by_components(path, directory, expected):
    """Clause 12: a directory is under itself, and a longer name is not below a shorter one."""
    assert expected == is_under(path, directory)


@pytest.mark.parametrize("text", ["srv", "./srv", "", "/srv/../etc", "/srv/\0x"])
def test_under_refuses_what_is_not_resolved(text):
    """Clause 12: relative paths, `..` and NUL are errors on either side."""
    with pytest.raises(ValueError):
        is_under(text, "/srv")
    with pytest.raises(ValueError):
        is_under("/srv", text)


@pytest.mark.parametrize(
    ("url", "host"),
    [
        ("https://github.com", "github.com"),
        ("http://github.com/", "github.com"),
        ("HTTPS://GitHub.COM./x", "github.com"),
        ("https://github.com:443/a?b=c#d", "github.com"),
        ("https://github.com?x=@y", "github.com"),
        ("https://evil.test/?n=github.com", "evil.test"),
        ("https://github.com.evil.test/", "github.com.evil.test"),
        ("https://evilgithub.com", "evilgithub.com"),
        ("https://xn--bcher-kva.example/", "xn--bcher-kva.example"),
        ("https://api.github.com/a%20b", "api.github.com"),
        ("http://[::1]/github.com", "[::1]"),
        ("http://127.0.0.1:8080/", "127.0.0.1"),
        ("https://a_b.example", "a_b.example"),
    ],
)
def test_the_host_of_a_url_is_what_a_client_would_connect_to(url, host):
    """Clause 12: the host in lower case, without port and trailing dot."""
    assert host == parse_host(url)


@pytest.mark.parametrize(
    "url",
    [
        "",
        "github.com",
        "//github.com",
        "ftp://github.com",
        "javascript:alert(1)",
        "https:github.com",
        "https:/github.com",
        "https://",
        "https:///x",
        "https://github.com@evil.test",
        "https://user:pw@github.com",
        "https://@github.com",
        "https:\\\\evil.test",
        "https://github.com\\@evil.test",
        "https://github.com\t.evil.test",
        "https://github.com\n",
        " https://github.com",
        "https://github.com /",
        "https://github.com\0",
        "https://github%2ecom",
        "https://github.com%00.evil.test",
        "https://github.com/%zz",
        "https://g\u0456thub.com",
        "https://github\u3002com",
        "https://github.com/caf\u00e9",
        "https://.github.com",
        "https://github..com",
        "https://github.com..",
        "https://.",
        "http://[::1",
        "http://[::g]/",
        "http://[::1]x/",
        "http://[fe80::1%25eth0]/",
        "https://github.com:80a/",
        "https://github.com:80:90/",
        "http\u017f://github.com",
    ],
)
def test_a_url_on_which_readers_could_disagree_is_an_error(url):
    """Clause 12: anything but RFC 3986 in ASCII with a plain http(s) authority is an error."""
    with pytest.raises(ValueError):
        parse_host(url)


@pytest.mark.parametrize(
    ("host", "entry", "expected"),
    [
        ("github.com", "github.com", True),
        ("github.com", "GitHub.com.", True),
        ("api.github.com", "github.com", False),
        ("api.github.com", "*.github.com", True),
        ("a.b.github.com", "*.github.com", True),
        ("github.com", "*.github.com", False),
        ("evilgithub.com", "*.github.com", False),
        ("github.com.evil.test", "*.github.com", False),
        ("[::1]", "[::1]", True),
    ],
)
def test_a_host_is_matched_exactly_or_as_a_subdomain(host, entry, expected):
    """Clause 12: an exact host without regard to case, `*.x` for the subdomains of x."""
    assert expected == host_matches(host, entry)
    assert expected == host_matches(host, ["other.example", entry])


@pytest.mark.parametrize(
    "entry", ["example.com", "*.Example.com.", "localhost", "10.0.0.1", "[::1]"]
)
def test_a_host_is_a_good_entry(entry):
    """A host, a wildcard for subdomains, an address."""
    assert host_pattern_problem(entry) is None


@pytest.mark.parametrize(
    "entry",
    [
        "https://example.com",
        "example.com:80",
        "example.com/",
        "*",
        "*.*.x",
        "a.*.b",
        "b\u00fccher.de",
        ".x",
        "[1]",
    ],
)
def test_anything_else_in_a_host_list_is_refused(entry):
    """An entry that no host could ever equal is named."""
    assert entry in host_pattern_problem(entry)
