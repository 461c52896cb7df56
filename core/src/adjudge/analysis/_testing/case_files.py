"""Where the test cases of a policy are: `policy.yaml` has them in `policy.test.yaml` beside it.

Any of the formats that policies are written in will do, whichever the policy's is. A file of cases
may name its policy, or its layers, itself; paths are relative to that file.
"""

from __future__ import annotations

from pathlib import Path

from adjudge.analysis._asking import Policy
from adjudge.analysis._testing.case_reading import read_policy_tests
from adjudge.analysis._testing.cases import PolicyTests
from adjudge.errors import PolicyCompileError
from adjudge.policy import (
    PolicyLayer,
    compile_policy,
    first_layer_wins,
    last_layer_wins,
    load_policy_file,
    strict_overrides_loose,
)
from adjudge.policy._reading.source import read_policy

__all__ = [
    "policy_files_of",
    "is_test_file",
    "load_policy_tests",
    "load_tested_policy",
    "find_policy_tests",
]

_SUFFIXES = (".yaml", ".yml", ".json", ".toml")
_COMBINERS = (strict_overrides_loose, first_layer_wins, last_layer_wins)


def is_test_file(path: str | Path) -> bool:
    """Say whether a file is called as one of test cases is: `NAME.test.SUFFIX`."""
    name = Path(path).name
    return any(name.endswith(f".test{suffix}") for suffix in _SUFFIXES)


def load_policy_tests(path: str | Path) -> PolicyTests:
    """Read the cases in a file; its suffix says the format (.yaml, .yml, .json, .toml).

    Raises `PolicyCompileError` with every problem found, also where the file cannot be read.
    """
    return read_policy_tests(_bytes_of(path), file=str(path))


def load_tested_policy(tests: PolicyTests) -> Policy:
    """Compile the policy, or the layers, that a file of cases is about.

    It is what the file names, else the policy beside it. Raises `PolicyCompileError`.
    """
    files = policy_files_of(tests)
    if not tests.layers:
        return load_policy_file(files[0])
    layers = [
        PolicyLayer(name, read_policy(_bytes_of(file), file=str(file)))
        for name, file in zip(tests.layers, files, strict=True)
    ]
    merge = next(each for each in _COMBINERS if each.__name__ == tests.merge)
    return compile_policy(layers, merge=merge)


def policy_files_of(tests: PolicyTests) -> tuple[Path, ...]:
    """Give the files of the policy that the cases are about, or of its layers in order.

    Raises `PolicyCompileError` where there is none, or where it is not clear which is meant.
    """
    here = Path(tests.file or ".")
    if tests.layers:
        return tuple(here.parent / name for name in tests.layers.values())
    if tests.policy is not None:
        return (here.parent / tests.policy,)
    stem = here.name.rpartition(".test.")[0]
    found = [here.with_name(stem + suffix) for suffix in _SUFFIXES]
    found = [file for file in found if stem and file.is_file()]
    if len(found) == 1:
        return (found[0],)
    same = here.with_name(f"{stem}{here.suffix}")
    if same in found:
        return (same,)
    if found:
        names = " and ".join(file.name for file in found)
        raise PolicyCompileError(
            f"{here}: both {names} stand beside it; say which is tested with policy: NAME."
        )
    expected = f"There is no {same.name} beside it" if stem else "It names no policy"
    raise PolicyCompileError(f"{here}: {expected}; say which policy is tested with policy: NAME.")


def find_policy_tests(policy: str | Path) -> tuple[Path, ...]:
    """Give the files of test cases that stand beside a policy, under its name."""
    path = Path(policy)
    beside = (path.parent / f"{path.stem}.test{suffix}" for suffix in _SUFFIXES)
    return tuple(file for file in beside if path.stem and file.is_file())


def _bytes_of(path: str | Path) -> bytes:
    try:
        return Path(path).read_bytes()
    except OSError as error:
        raise PolicyCompileError(
            f"The file {str(path)!r} cannot be read: {error.strerror or error}."
        ) from error
