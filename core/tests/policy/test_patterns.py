"""Regular expressions: no pattern that can hang, and `$` by position (clause 11)."""

import pickle
import random
import re
import sys
import time
from re import _parser

import pytest

from adjudge.policy._patterns.cost import Cost, cost_of
from adjudge.policy._patterns.pattern import (
    MAX_LINEAR,
    MAX_PATTERN,
    MAX_QUADRATIC,
    SubjectTooLong,
    UnsafePattern,
    compile_pattern,
)
from adjudge.policy._patterns.tree import (
    build_tree,
    is_rigid,
    is_tied_and_nearly_rigid,
    parse,
)


def compiled(text, *, permitting=False):
    """Compile a pattern, for restricting position unless told otherwise."""
    return compile_pattern(text, permitting=permitting)


@pytest.mark.parametrize(
    "text",
    [
        "(x+x+)+y",
        "^(x+)+$",
        "^(x*)*$",
        "(?:x|x)*y",
        "(?:x|xx)*y",
        "(?:.|\\s)*y",
        "^(\\d+\\s*)+z",
        "^(\\d+\\s?)+z",
        "^(?:x?y?)*z",
        "^(?:[a-f]x|[e-k]x)*z",
        "^(?:\\w-|\\d-)+z",
        "^(?:(?:ab)*c*)*d",
        "^(?:x{1,9})+y",
        "^(?=(?:x|x)*y)",
        "(?i)^(?:kx|Kx)*z",
        "^(?:[^\u4e00-\u9fff]x|\u00e9x)*z",
        "^(a)(?:(?i:\\1)|A)*z",
        "^((?:x+)?)*y",
        "^(?:x*?)*?y",
        "^(?:\u00e9x|[\u00e0-\u00ff]x)*z",
        "(?a)^(?:(?u:\\w)|\u00e9)+z",
    ],
)
def test_a_pattern_that_can_take_exponential_time_is_refused(text):
    """Clause 11: two ways round one loop on the same text are refused at compile time."""
    with pytest.raises(UnsafePattern, match="exponential"):
        compiled(text)


@pytest.mark.parametrize(
    ("text", "power"),
    [
        ("x.*y.*z", 3),
        ("^x*x*x*y", 3),
        ("\\s+\\s*=", 3),
        (".*.*x", 3),
        ("^.*=.*=.*=.*;", 4),
        ("\\w+\\d+\\w+!", 4),
    ],
)
def test_a_pattern_that_can_take_cubic_time_or_worse_is_refused(text, power):
    """Clause 11: three loops on one text, the search itself being one of them, are refused."""
    with pytest.raises(UnsafePattern, match=f"power {power} "):
        compiled(text)


@pytest.mark.parametrize(
    "text",
    [
        "a?" * 25 + "a" * 25,
        "|".join("\\s+" + letter for letter in "abcdefghijk"),
        "(?:" + "|".join("\\s+[x-z]" + letter for letter in "abcdefghijk") + ")",
        "(?:a?){25}a{25}",
        "(?:a|a){30}b",
        "^" + "(?:|x)" * 20 + "y",
    ],
)
def test_optional_parts_that_overlap_too_often_are_refused(text):
    """Clause 11: exponential in the pattern's own length is a hang as well, without a loop."""
    with pytest.raises(UnsafePattern, match="too many ways"):
        compiled(text)


@pytest.mark.parametrize(
    ("text", "bound"),
    [
        ("rm -rf", MAX_LINEAR),
        ("^rm\\s", MAX_LINEAR),
        ("(?i)\\b(drop|truncate)\\s+table\\b", MAX_LINEAR),
        ("^/tmp/[a-z]+$", MAX_LINEAR),
        ("^(?:status|log|diff)(?: .*)?$", MAX_LINEAR),
        ("foo.*", MAX_LINEAR),
        ("^(?=.*[A-Z])(?=.*\\d).{8,}$", MAX_LINEAR),
        ("^[\\w.+-]+@[\\w-]+\\.[a-z]{2,6}$", MAX_LINEAR),
        ("[0-9a-f]{8}-(?:[0-9a-f]{4}-){3}[0-9a-f]{12}", MAX_LINEAR),
        ("\\b\\d{1,3}(?:\\.\\d{1,3}){3}\\b", MAX_LINEAR),
        ("(?<!\\w)secret(?!\\w)", MAX_LINEAR),
        ('^(?:[^"\\\\]|\\\\.)*$', MAX_LINEAR),
        ("^((a|b)+,)*c", MAX_LINEAR),
        ("\\s+rm\\b", MAX_QUADRATIC),
        ("foo.*bar", MAX_QUADRATIC),
        ("^a.*b.*c", MAX_QUADRATIC),
        ("|".join(f"{letter}{letter}" for letter in "abcdefghijklmnopqrstuvw"), MAX_LINEAR),
        ("([\"']).*?\\1", MAX_QUADRATIC),
        ("^\\s*(\\w+)\\s*=\\s*(.*)$", MAX_QUADRATIC),
        ("[\\w.+-]+@[\\w-]+\\.[\\w.-]+", MAX_QUADRATIC),
        ("|".join(f"word{number}" for number in range(200)), MAX_LINEAR),
        ("", MAX_LINEAR),
    ],
)
def test_an_ordinary_pattern_is_taken_with_the_bound_of_its_cost(text, bound):
    """Clause 11: up to 1 MiB for a linear pattern, 4 KiB for a quadratic one."""
    assert bound == compiled(text).max_subject


@pytest.mark.parametrize("text", ["foo.*bar", "rm -rf"])
def test_a_subject_beyond_the_bound_is_an_error(text, monkeypatch):
    """Clause 11: beyond the bound the answer is an error and never a no, without the extra."""
    monkeypatch.setitem(sys.modules, "re2", None)
    pattern = compiled(text)

    assert not pattern.search("x" * pattern.max_subject)
    with pytest.raises(SubjectTooLong):
        pattern.search("x" * (pattern.max_subject + 1))


@pytest.mark.parametrize("seed", range(4))
def test_no_random_pattern_that_is_taken_can_hang(seed):
    """Clause 11: whatever is compiled answers its longest hostile subject within seconds."""
    source = random.Random(seed)

    def pattern(depth):
        kind = source.random()
        if depth == 0 or kind < 0.3:
            return source.choice(["a", "b", "[ab]", ".", "\\w", "[^a]", "c"])
        if kind < 0.5:
            return pattern(depth - 1) + pattern(depth - 1)
        if kind < 0.65:
            return f"(?:{pattern(depth - 1)}|{pattern(depth - 1)})"
        if kind < 0.9:
            suffix = source.choice(["*", "+", "?", "{2}", "{0,3}", "{2,5}", "*?", "{0,40}"])
            return f"(?:{pattern(depth - 1)}){suffix}"
        return f"({source.choice(['?=', '?!', '?>'])}{pattern(depth - 1)})"

    taken = 0
    for _ in range(60):
        text = source.choice(["", "^"]) + pattern(3) + source.choice(["$", "!"])
        try:
            found = compiled(text)
        except UnsafePattern:
            continue
        taken += 1
        length = min(found.max_subject, 20_000)
        for pump in ("a", "b", "ab", "aab"):
            before = time.perf_counter()
            found.search((pump * length)[: length - 1] + "?")
            assert time.perf_counter() - before < 20, text
    assert taken > 10


@pytest.mark.parametrize(
    "text", ["(", "[a", "a**", "a{99999999999}", "(?P<x>", "[[a]", "(?z)", "\\8", "(?<=a+)b", "*"]
)
def test_what_python_does_not_take_is_refused(text):
    """A broken pattern, and one that a later Python may read otherwise, is refused."""
    with pytest.raises(UnsafePattern, match="no regular expression"):
        compiled(text)


def test_a_pattern_has_a_greatest_length():
    """A pattern longer than any that a person reads is refused."""
    assert compiled("a" * MAX_PATTERN).max_subject == MAX_LINEAR
    with pytest.raises(UnsafePattern, match="longer"):
        compiled("a" * (MAX_PATTERN + 1))


@pytest.mark.parametrize("permitting", [True, False])
def test_a_pattern_nested_too_deep_is_refused(permitting):
    """Law 4: the limit of the interpreter's stack is an error of the pattern."""
    with pytest.raises(UnsafePattern):
        compile_pattern("(" * 250 + "a" + ")" * 250, permitting=permitting)


def test_a_pattern_too_large_to_be_shown_safe_is_refused():
    """Where no bound is found within reason, none is assumed."""
    with pytest.raises(UnsafePattern, match="too large"):
        compiled("x{0,120}" * 100 + "!")


@pytest.mark.parametrize(
    ("text", "subject", "permitting", "restricting"),
    [
        ("^a$", "a", True, True),
        ("^a$", "a\n", False, True),
        ("^a\\Z", "a\n", False, False),
        ("(?m)^a$", "a\nb", True, True),
        ("(?m:^a$)", "a\nb", True, True),
        ("^(?m:a$)\\n(?:b$)", "a\nb\n", False, True),
        ("(?x) ^a $ # the end is $", "a\n", False, True),
        ("(?x) ^a $ # [ (", "a\n", False, True),
        ("^(?x: a $ # a ) b $\n)", "a\n", False, True),
        ("^a(?#$)$", "a\n", False, True),
        ("^[$]$", "$\n", False, True),
        ("^[^]$]$", "x\n", False, True),
        ("^[]$]$", "]\n", False, True),
        ("^[\\]$]$", "$\n", False, True),
        ("^\\$$", "$\n", False, True),
        ("^\\\\$", "\\\n", False, True),
        ("^(a)(?(1)b|c)$", "ab\n", False, True),
        ("^(?P<x>a)(?P=x)$", "aa\n", False, True),
        ("^a$|^a$b", "a\n", False, True),
        ("^(?i:A)$", "a\n", False, True),
        ("^(?-i:a)$", "a\n", False, True),
    ],
)
def test_a_dollar_is_the_very_end_where_it_would_permit(text, subject, permitting, restricting):
    """Clause 11: `$` is the text's end in permitting position, else and under (?m) Python's."""
    assert permitting == compiled(text, permitting=True).search(subject)
    assert restricting == compiled(text, permitting=False).search(subject)
    assert restricting == (re.search(text, subject) is not None)


@pytest.mark.parametrize(
    "text", ["a(?=b$)", "a(?!$)", "(?<!a$)b", "(?>a$)", "(?:a$)++", "(?=(?:a|(b$)))"]
)
@pytest.mark.parametrize("permitting", [True, False])
def test_a_dollar_in_a_locked_place_is_refused(text, permitting):
    """Clause 11: inside a lookaround, an atomic group or a possessive repeat `$` is refused."""
    with pytest.raises(UnsafePattern, match=r"write \\Z"):
        compiled(text, permitting=permitting)


def test_a_dollar_under_m_is_taken_in_a_locked_place():
    """Clause 11: under (?m) `$` is Python's everywhere."""
    assert compiled("(?m)a(?=$)", permitting=True).search("a\nb")


def test_a_pattern_pickles():
    """A compiled pattern travels to another process by its text."""
    pattern = pickle.loads(pickle.dumps(compiled("^a$", permitting=True)))

    assert pattern.search("a")
    assert not pattern.search("a\n")


def test_pythons_parser_is_where_it_is_expected():
    """The one private thing that the analysis reads, Python's parse tree, has its shape."""
    (kind, (least, most, body)) = _parser.parse("(?:a|bc)*$")[0]

    assert ("MAX_REPEAT", 0, _parser.MAXREPEAT) == (str(kind), least, most)
    assert "BRANCH" == str(body[0][0])
    assert "AT_END" == str(_parser.parse("$")[0][1])
    assert ["SUBPATTERN", "ATOMIC_GROUP", "ASSERT_NOT", "GROUPREF", "POSSESSIVE_REPEAT"] == [
        str(op) for op, _ in _parser.parse("(a)(?>b)(?!c)\\1d++")
    ]


@pytest.mark.parametrize(
    "text",
    ["^acct-[0-9]{4}$", "a", "", "(?i)a.b\\Z", "a[^x]\\d{3}", "(?:ab){2}\\b", "a{100}"],
)
def test_a_rigid_pattern_costs_what_the_search_for_its_cost_finds(text):
    """Clause 11: where the engine has no choice the cost is known, and is the one that is found."""
    parsed = parse(text)

    assert is_rigid(parsed)
    assert Cost(1, 1) == cost_of(build_tree(parsed))


@pytest.mark.parametrize(
    "text", ["a*", "a?", "a{1,2}", "ab|cd", "(?=a)", "(a)\\1", "(?>a)", "a++", "(a)"]
)
def test_a_pattern_with_a_choice_is_not_rigid(text):
    """Clause 11: the cost of whatever can be matched in more ways than one is searched for."""
    assert not is_rigid(parse(text))


@pytest.mark.parametrize(
    "text",
    ["^acct7-[0-9]+$", "\\A/data/.*\\.csv\\Z", "(?i)^a+?b", "^[a-z]{1,64}@x", "^\\w*ab{3}$", "^a?"],
)
def test_a_tied_pattern_with_one_choice_costs_what_the_search_for_its_cost_finds(text):
    """Clause 11: tied to the start, one count of one set leads to each place in one way."""
    parsed = parse(text)

    assert is_tied_and_nearly_rigid(parsed, longest=200)
    assert Cost(1, 1) == cost_of(build_tree(parsed))


@pytest.mark.parametrize(
    "text",
    [
        "a+b",
        "(?m)^a+b",
        "x^a+",
        "^a+b+",
        "^(?:ab)+c",
        "^(a|b)+",
        "^a+(?=b)",
        "^a+(b|c)",
        "^a+b{201}",
    ],
)
def test_a_pattern_that_is_not_tied_or_has_more_choices_is_searched_for_its_cost(text):
    """Clause 11: a search, a second choice, a choice of groups or a long rest multiply the cost."""
    assert not is_tied_and_nearly_rigid(parse(text), longest=200)


def test_a_rigid_pattern_that_is_long_is_not_taken_unseen():
    """Clause 11: a fixed count multiplies the cost of every start, so its length is bounded."""
    assert MAX_LINEAR == compiled("a{200}").max_subject
    assert MAX_QUADRATIC == compiled("a{1000}").max_subject
