"""`adjudge run SCRIPT`."""

from __future__ import annotations

import pytest


@pytest.fixture
def script(tmp_path):
    """Write the script."""

    def write(text, name="script.py"):
        (tmp_path / name).write_text(text)
        return name

    return write


def test_it_runs_the_async_main_with_its_arguments_and_its_neighbours(process, script):
    """main() runs, sys.argv is the script's own, and modules beside it import."""
    script("WORD = 'beside'\n", "neighbour.py")
    script(
        "import sys\n"
        "from neighbour import WORD\n"
        "async def main():\n"
        "    print(WORD, sys.argv[1:], __name__)\n"
    )
    done = process("run", "script.py", "a", "--b")

    assert (0, "beside ['a', '--b'] script\n", "") == (done.returncode, done.stdout, done.stderr)


@pytest.mark.parametrize(
    "text",
    [
        "async def main():\n    raise ValueError('no such order')\n",
        "raise ValueError('no such order')\n",
    ],
)
def test_an_exception_is_shown_and_is_one(process, script, text):
    """What main() or the import raises is shown with its traceback, exit 1."""
    done = process("run", script(text))

    assert 1 == done.returncode
    assert "Traceback" in done.stderr
    assert "ValueError: no such order" in done.stderr
    assert "script.py" in done.stderr


def test_a_script_that_exits_gives_its_own_code(process, script):
    """sys.exit in the script is the script's word."""
    assert (
        5 == process("run", script("import sys\nasync def main():\n    sys.exit(5)\n")).returncode
    )


@pytest.mark.parametrize("text", ["", "def main():\n    pass\n", "main = 3\n"])
def test_a_script_without_an_async_main_is_bad_input(process, script, text):
    """Nothing run is not good."""
    done = process("run", script(text))

    assert 2 == done.returncode
    assert "async def main()" in done.stderr


def test_a_script_that_is_not_there_is_bad_input(process):
    """A wrong path is exit 2."""
    assert 2 == process("run", "missing.py").returncode


def test_a_governed_run_with_a_tool_in_its_own_process(process, script):
    """A script's tools are found by the process that an executor starts."""
    script(
        "from adjudge import *\n"
        "@tool()\n"
        "def double(n: int) -> int:\n"
        "    return 2 * n\n"
        "RULE = {'id': 'a', 'match': 'always', 'decision': 'allow'}\n"
        "POLICY = compile_policy({'rules': [RULE]})\n"
        "async def main():\n"
        "    guard = ToolGuard(policy=POLICY, tools=ToolSet([double]),\n"
        "                      executor=subprocess_executor())\n"
        "    print((await guard.check('double', {'n': 21})).result.value)\n"
    )

    assert "42\n" == process("run", "script.py").stdout
