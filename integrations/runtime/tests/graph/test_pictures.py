"""Pictures show every way that work can go, and a name in them is never more than a name."""

from xml.etree import ElementTree

import pytest

from adjudge.cli import main
from adjudge_runtime import compile_graph, to_mermaid, to_svg

TABLE = """\
start: plan
max_transitions: 9
edges:
  - { from: plan, to: [search, lookup], join: review }
  - { from: review, when: { answer_matches: "(?i)approved|ok" }, to: done }
  - { from: review, when: { denials_gt: 2 }, to: escalate }
  - { from: review, to: plan }
"""
HOSTILE = "{start: '<b>\"];x', max_transitions: 2, edges: [{from: '<b>\"];x', to: done}]}"
SVG = "{http://www.w3.org/2000/svg}"


def texts(svg):
    """Give the texts of a picture."""
    return [each.text for each in ElementTree.fromstring(svg).iter(f"{SVG}text")]


def test_mermaid_shows_nodes_edges_branches_and_ends():
    """Branches are thick, and an end that no line says is dotted."""
    assert to_mermaid(compile_graph(TABLE)).splitlines() == [
        "flowchart TD",
        "    start(( )) --> n0",
        '    n0["plan"]',
        '    n1["search"]',
        '    n2["lookup"]',
        '    n3["review"]',
        '    n4["escalate"]',
        '    done(["done"])',
        "    n0 ==> n1",
        "    n0 ==> n2",
        "    n1 ==> n3",
        "    n2 ==> n3",
        '    n3 -->|"answer #126; #40;#63;i#41;approved#124;ok"| done',
        '    n3 -->|"denials #62; 2"| n4',
        '    n3 -->|"else"| n0',
        "    n4 -.-> done",
    ]


def test_mermaid_escapes_whatever_a_name_holds():
    """No name ends its own label."""
    assert 'n0["#60;b#62;#34;#93;#59;x"]' in to_mermaid(compile_graph(HOSTILE))


def test_svg_shows_nodes_and_conditions():
    """The picture is well-formed and has every name and every condition once."""
    shown = texts(to_svg(compile_graph(TABLE)))

    assert sorted(shown) == sorted(
        [
            "plan",
            "search",
            "lookup",
            "review",
            "escalate",
            "done",
            "answer ~ (?i)approved|ok",
            "denials > 2",
            "else",
        ]
    )


def test_svg_has_an_arrow_for_every_way():
    """One path for each arrow, and one for the way in."""
    root = ElementTree.fromstring(to_svg(compile_graph(TABLE)))
    ways = [each for each in root.iter(f"{SVG}path") if "way" in each.get("class", "")]

    assert len(ways) == 8 + 1


def test_svg_escapes_whatever_a_name_holds():
    """A name is text of the picture, and nothing else of it."""
    assert '<b>"];x' in texts(to_svg(compile_graph(HOSTILE)))


def test_no_two_boxes_of_a_picture_overlap():
    """Every node has a place of its own inside the picture."""
    root = ElementTree.fromstring(to_svg(compile_graph(TABLE)))
    boxes = [
        tuple(float(each.get(key)) for key in ("x", "y", "width", "height"))
        for each in root.iter(f"{SVG}rect")
        if each.get("class") in ("box", "end")
    ]

    assert len(boxes) == 6
    for index, (x, y, width, height) in enumerate(boxes):
        assert 0 <= x <= x + width <= float(root.get("width"))
        assert 0 <= y <= y + height <= float(root.get("height"))
        for ox, oy, owidth, oheight in boxes[:index]:
            assert x + width < ox or ox + owidth < x or y + height < oy or oy + oheight < y


@pytest.fixture
def graph_file(tmp_path):
    """Write the table to a file."""
    path = tmp_path / "graph.yaml"
    path.write_text(TABLE)
    return path


def test_the_command_checks_a_file(graph_file, capsys):
    """A good graph is summed up, with the nodes after which work ends."""
    code = main(["graph", "check", str(graph_file)])
    out, err = capsys.readouterr()

    assert (0, "") == (code, err)
    assert "5 nodes (plan, search, lookup, review, escalate), 4 edges, max_transitions 9" in out
    assert "ends after escalate" in out


def test_the_command_draws_a_file(graph_file, capsys):
    """Mermaid text goes to stdout."""
    assert (0, to_mermaid(compile_graph(TABLE))) == (
        main(["graph", "render", str(graph_file)]),
        capsys.readouterr().out,
    )


def test_the_command_draws_into_a_file(graph_file, tmp_path):
    """`-o` says where the picture goes."""
    out = tmp_path / "graph.svg"

    assert main(["graph", "render", str(graph_file), "--format", "svg", "-o", str(out)]) == 0
    assert to_svg(compile_graph(TABLE)) == out.read_text(encoding="utf-8")


@pytest.mark.parametrize("command", ["check", "render"])
def test_a_file_that_is_no_graph_is_told_on_stderr(command, tmp_path, capsys):
    """The exit code is 1, and nothing is drawn."""
    path = tmp_path / "graph.yaml"
    path.write_text("start: a\nedges: []")
    code = main(["graph", command, str(path)])
    out, err = capsys.readouterr()

    assert (1, "") == (code, out)
    assert f"{path}:2:" in err


def test_a_node_that_is_not_there_is_told(graph_file, capsys):
    """`--nodes` says which names there are."""
    code = main(["graph", "check", str(graph_file), "--nodes", "plan,search,lookup,review"])

    assert code == 1
    assert 'There is no node "escalate"' in capsys.readouterr().err


@pytest.mark.parametrize(
    "arguments",
    [["check", "missing.yaml"], ["render", "missing.yaml"], ["draw", "x"], []],
    ids=["check", "render", "unknown", "nothing"],
)
def test_bad_usage_and_unreadable_files_exit_with_2(arguments, capsys):
    """What cannot be read is no finding about a graph."""
    assert main(["graph", *arguments]) == 2
    assert capsys.readouterr().err


def test_a_picture_that_cannot_be_written_exits_with_2(graph_file, tmp_path, capsys):
    """The directory has to be there."""
    out = tmp_path / "no" / "graph.svg"

    assert main(["graph", "render", str(graph_file), "-o", str(out)]) == 2
    assert str(out) in capsys.readouterr().err
