"""The `re2` extra: texts of any length, and never another verdict (clause 11)."""

import random
import re

import pytest

from adjudge.policy._patterns.linear import linear_search
from adjudge.policy._patterns.pattern import SubjectTooLong, compile_pattern

pytestmark = pytest.mark.needs_extra


@pytest.mark.parametrize(
    ("pattern", "permitting", "text", "found"),
    [
        ("rm -rf", False, "x" * 2_000_000 + "rm -rf", True),
        ("foo.*bar", False, "foo" + "x" * 1_000_000 + "bar", True),
        ("foo.*bar", False, "foo\n" * 100_000, False),
        ("\\s+rm\\b", False, " " * 100_000 + "rm;", True),
        ("foo.*bar$", False, "y" * 5_000 + "foobar\n", True),
        ("foo.*bar$", True, "y" * 5_000 + "foobar\n", False),
    ],
)
def test_a_text_beyond_the_bound_is_searched_by_re2(pattern, permitting, text, found):
    """Clause 11: with the extra the bounds fall away for patterns that mean the same."""
    assert found is compile_pattern(pattern, permitting=permitting).search(text)


@pytest.mark.parametrize(
    "pattern",
    [
        "(a)\\1",
        "(?=a)b",
        "(?<!a)b",
        "(?>a+)b",
        "a++b",
        "(a)?(?(1)b|c)",
        "(?:a?)*b",
        "a$b?",
        "(?:a$|b)c",
        "a{1001}",
        "a{0,1001}",
        "(?:a{100}){100}",
    ],
)
def test_a_pattern_that_may_mean_something_else_is_not_given_to_re2(pattern):
    """Clause 11: RE2 runs what means the same in both engines, and nothing else."""
    search = linear_search(pattern)

    assert [None, None] == [search("ab"), search("\u00e9b")]


def test_where_re2_is_not_asked_a_text_beyond_the_bound_is_an_error():
    """Clause 11: beyond the bound a pattern that RE2 may read otherwise answers with an error."""
    pattern = compile_pattern("(?<!\\w)secret", permitting=False)

    with pytest.raises(SubjectTooLong):
        pattern.search("x" * (pattern.max_subject + 1))


@pytest.mark.parametrize(
    ("source", "text", "longest"),
    [
        ("(?:\u00e9|\u00fc|\\w){100}!", "\u00e9", 1_100_000),
        ("a.{200}b", "a\u00e9", 400_000),
        ("a.{200}b", "ac", 1_300_000),
    ],
)
def test_a_text_too_long_for_a_large_pattern_keeps_the_bound(source, text, longest):
    """Clause 11: what leads RE2 to a new state with each byte would take half a minute and more."""
    pattern = compile_pattern(source, permitting=False)

    with pytest.raises(SubjectTooLong):
        pattern.search((text * longest)[:longest])


def test_a_large_pattern_is_searched_in_a_text_that_takes_seconds_at_most():
    """Clause 11: beyond the bound of Python's engine RE2 answers, as long as it surely can."""
    pattern = compile_pattern("a.{200}b", permitting=False)

    assert pattern.search("c" * pattern.max_subject + "a" + "\u00e9" * 200 + "b")


def test_a_boundary_of_words_is_left_to_re2_in_ascii_alone():
    r"""Clause 11: RE2's `\b` knows ASCII letters only, so other texts keep the bound."""
    pattern = compile_pattern("\\brm\\b", permitting=False)

    assert pattern.search("x" * pattern.max_subject + " rm")
    with pytest.raises(SubjectTooLong):
        pattern.search("\u00e9" * pattern.max_subject + "rm ")


def test_a_text_that_is_no_unicode_keeps_the_bound():
    """Clause 11: what cannot be encoded cannot be searched by RE2."""
    pattern = compile_pattern("rm", permitting=False)

    with pytest.raises(SubjectTooLong):
        pattern.search("\ud800" * (pattern.max_subject + 1))


@pytest.mark.parametrize(
    "source",
    [
        *("\\d", "\\D", "\\s", "\\S", "\\w", "\\W", "[^\\n\\w]", "[\u00e0-\u00ff\\d_]"),
        *(".", "(?s:.)", "(?a:\\w)", "(?a:\\s)", "(?ai:k)"),
        *("(?a:(?u:\\w))", "(?a:\\w(?u:))", "(?ai:(?u:k))"),
        *(
            "[^\\s\\S]",
            "[\u00e0-\u00ff]",
            "(?i:k)",
            "(?i:[^s-t\u00e9])",
            "(?i:\u0130)",
            "(?i:\u03c3)",
            "(?i:\u00b5)",
        ),
    ],
)
def test_a_set_has_the_same_members_in_both_engines(source):
    """Clause 11: Python's tables decide; all of the first plane is tried, and samples beyond."""
    python = re.compile(source)
    search = linear_search(f"\\A{source}\\Z")
    every = list(map(chr, (*range(0xD800), *range(0xE000, 0x110000, 101))))

    assert [] == [char for char in every if search(char) is not bool(python.fullmatch(char))]


@pytest.mark.parametrize("seed", range(2))
def test_random_patterns_answer_alike_in_both_engines(seed):
    """Clause 11: on random texts RE2 answers what Python's engine answers."""
    source = random.Random(seed)
    asked = 0
    for _ in range(60):
        pattern = _pattern(source, 3)
        try:
            python = re.compile(pattern)
        except re.error:
            continue
        search = linear_search(pattern)
        for _ in range(60):
            text = "".join(
                source.choice("ab\n \u00e9kK\u212a1") for _ in range(source.randrange(8))
            )
            answer = search(text)
            if answer is not None and text:
                asked += 1
                assert answer is (python.search(text) is not None), (pattern, text)
    assert asked > 800


def _pattern(source, depth):
    kind = source.randrange(9) if depth else source.randrange(3)
    if kind == 0:
        return source.choice(["a", "b", "\\n", "\u00e9", "k", "."])
    if kind == 1:
        return source.choice(["[ab]", "[^a]", "\\w", "\\s", "\\d", "[^\\w]", "(?i:k)", "(?s:.)"])
    if kind == 2:
        return source.choice(["^", "$", "\\b", "\\B", "\\Z", "\\A", "(?m:^)", "(?m:$)", "", "a"])
    if kind < 6:
        return _pattern(source, depth - 1) + _pattern(source, depth - 1)
    if kind == 6:
        return f"(?:{_pattern(source, depth - 1)}|{_pattern(source, depth - 1)})"
    return f"({_pattern(source, depth - 1)}){source.choice(['*', '+', '?', '*?', '{2}', '{1,3}'])}"
