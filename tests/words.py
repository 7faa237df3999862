"""Refuse names that do not say what they name, and docstrings that open with a question, in files and folders.

python tests/words.py FILE_OR_FOLDER ...
"""

import ast
import sys
from collections.abc import Iterator
from pathlib import Path

VAGUE = frozenset({"told", "found", "each", "known", "these"})
QUESTIONS = frozenset({"What", "Where", "Which", "Who", "Whether", "How", "When"})


def main(paths: list[str]) -> int:
    """Print every offence with its place. Return the exit code: 1 if there is one."""
    offences = [offence for path in paths for file in files(Path(path)) for offence in offences_of(file)]
    sys.stdout.writelines(f"{offence}\n" for offence in offences)
    return 1 if offences else 0


def files(path: Path) -> list[Path]:
    return sorted(path.rglob("*.py")) if path.is_dir() else [path]


def offences_of(file: Path) -> Iterator[str]:
    for node in ast.walk(ast.parse(file.read_bytes())):
        line = getattr(node, "lineno", 1)
        for name in VAGUE.intersection(bound(node)):
            yield f"{file}:{line}: {name!r} does not say what it is"
        if (opening := first_word(node)) in QUESTIONS:
            yield f"{file}:{line}: its docstring opens with {opening!r}: begin with a verb or a noun"


def bound(node: ast.AST) -> Iterator[str]:
    """Yield the names that a node binds: variables, attributes, parameters, functions, classes, imports."""
    match node:
        case ast.Name(id=name, ctx=ast.Store()) | ast.Attribute(attr=name, ctx=ast.Store()) | ast.arg(arg=name):
            yield name
        case ast.FunctionDef(name=name) | ast.AsyncFunctionDef(name=name) | ast.ClassDef(name=name):
            yield name
        case ast.alias(name=name, asname=other):
            yield other or name.rpartition(".")[2]
        case ast.ExceptHandler(name=str(name)) | ast.MatchAs(name=str(name)) | ast.MatchStar(name=str(name)):
            yield name


def first_word(node: ast.AST) -> str | None:
    """Return the first word of the docstring of a module, class or function."""
    if not isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef):
        return None
    words = (ast.get_docstring(node) or "").split(maxsplit=1)
    return words[0].rstrip(",:") if words else None


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
