from pathlib import Path

import pytest
from tests.words import main


@pytest.mark.parametrize(
    ("code", "offence"),
    [
        ("found = 1", "'found' does not say what it is"),
        ("for each in range(3): pass", "'each'"),
        ("[known for known in ()]", "'known'"),
        ("def f(*these): pass", "'these'"),
        ("def told(): pass", "'told'"),
        ("class A:\n    told: int = 0", "'told'"),
        ("a.b.found += 1", "'found'"),
        ("import a.b as known", "'known'"),
        ("try: pass\nexcept OSError as found: pass", "'found'"),
        ("match a:\n    case [*each]: pass", "'each'"),
        ("with a as (b, found): pass", "'found'"),
        ("if (found := 1): pass", "'found'"),
        ('"""What it is."""', "begin with a verb or a noun"),
        ('def f():\n    """Whether, and when."""', "opens with 'Whether'"),
        ('class A:\n    """Who asks."""', "opens with 'Who'"),
    ],
)
def test_an_offence_is_refused_with_its_place(
    code: str, offence: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "module.py").write_text(code)
    assert main([str(tmp_path)]) == 1
    printed = capsys.readouterr().out
    assert printed.startswith(f"{tmp_path / 'module.py'}:")
    assert offence in printed


def test_other_names_and_docstrings_pass(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "module.py").write_text(
        '"""Names found nowhere."""\nprint(found, a.told)\nknown_nodes = {"each": 1}\n"""What is no docstring."""\n'
    )
    assert main([str(tmp_path)]) == 0
    assert capsys.readouterr().out == ""
