"""How safe is `matches`, and what does its safety cost? (clause 11).

With `--attacks FILE`, JSON Lines with `pattern`, `prefix`, `pump`, `repeat` and `suffix`: each
pattern is refused, or searched in its attack (prefix + pump * repeat + suffix) in a process that is
killed when it hangs. Without, and besides: how many of the patterns in Python's own standard
library are refused, and which.

    python core/benchmarks/patterns.py --attacks attacks.jsonl
"""

from __future__ import annotations

import argparse
import ast
import json
import multiprocessing
import re
import sysconfig
import time
import warnings
from collections.abc import Iterator
from pathlib import Path

from adjudge.policy._patterns.pattern import SubjectTooLong, UnsafePattern, compile_pattern

HANGS_AFTER_SECONDS = 10.0
NO_LIBRARY = {"site-packages", "dist-packages", "test", "tests", "idlelib", "lib2to3"}


def main() -> None:
    """Print both figures."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n", 1)[0])
    parser.add_argument("--attacks", type=Path, help="JSON Lines of patterns with their attacks")
    options = parser.parse_args()
    if options.attacks is not None:
        attacks(options.attacks)
    standard_library()


def attacks(path: Path) -> None:
    """Try each pattern on its attack, in restricting and in permitting position."""
    refused = bounded = 0
    slowest = (0.0, "")
    hung = []
    cases = [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines() if line]
    for case in cases:
        subject = case["prefix"] + case["pump"] * case["repeat"] + case["suffix"]
        for permitting in (False, True):
            try:
                compile_pattern(case["pattern"], permitting=permitting)
            except UnsafePattern:
                refused += 1
                continue
            took = seconds(case["pattern"], permitting, subject)
            if took is None:
                hung.append(case["pattern"])
            elif took < 0:
                bounded += 1
            else:
                slowest = max(slowest, (took, case["pattern"]))
    tried = 2 * len(cases)
    decided = tried - refused - bounded - len(hung)
    print(f"attacks: {tried} ({len(cases)} patterns in both positions)")
    print(f"  refused when compiled: {refused}")
    print(f"  text beyond the pattern's bound, an error: {bounded}")
    print(f"  decided: {decided}, the slowest in {slowest[0] * 1e3:.1f} ms {slowest[1]}")
    print(f"  longer than {HANGS_AFTER_SECONDS:g} s: {len(hung)} {hung or ''}")


def seconds(pattern: str, permitting: bool, subject: str) -> float | None:
    """Time one search; negative where the text is beyond the bound, None where it hangs."""
    ours, theirs = multiprocessing.Pipe()
    child = multiprocessing.Process(target=search, args=(theirs, pattern, permitting, subject))
    child.start()
    took = ours.recv() if ours.poll(HANGS_AFTER_SECONDS) else None
    child.kill()
    child.join()
    return took


def search(answer, pattern: str, permitting: bool, subject: str) -> None:
    """Search in a process of its own, and say how long it took."""
    compiled = compile_pattern(pattern, permitting=permitting)
    start = time.perf_counter()
    try:
        compiled.search(subject)
    except SubjectTooLong:
        answer.send(-1.0)
    else:
        answer.send(time.perf_counter() - start)


def standard_library() -> None:
    """Compile each pattern of the standard library, and name those that are refused."""
    patterns = dict(written_patterns(Path(sysconfig.get_path("stdlib"))))
    refused = {}
    for pattern, where in patterns.items():
        try:
            compile_pattern(pattern, permitting=False)
        except UnsafePattern as error:
            refused[f"{where}: {pattern!r:.70}"] = str(error).split(":")[0].split(";")[0]
    share = len(refused) / len(patterns)
    print(f"standard library: {len(patterns)} patterns, {len(refused)} refused ({share:.1%})")
    for pattern, reason in refused.items():
        print(f"  {pattern}\n    {reason}")


def written_patterns(root: Path) -> Iterator[tuple[str, str]]:
    """Give each literal first argument of a function of `re`, with the file that it stands in."""
    for path in sorted(root.rglob("*.py")):
        if NO_LIBRARY & set(path.relative_to(root).parts):
            continue
        try:
            tree = ast.parse(path.read_text(encoding="utf-8"))
        except (SyntaxError, UnicodeDecodeError):
            continue
        for node in ast.walk(tree):
            text = _pattern_of(node)
            if text is not None:
                yield text, path.name


def _pattern_of(node: ast.AST) -> str | None:
    called = node.func if isinstance(node, ast.Call) else None
    if not isinstance(called, ast.Attribute) or not isinstance(called.value, ast.Name):
        return None
    first = node.args[0] if called.value.id == "re" and node.args else None
    if not isinstance(first, ast.Constant) or not isinstance(first.value, str):
        return None
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            re.compile(first.value)
        except re.error:
            return None
    return first.value


if __name__ == "__main__":
    main()
