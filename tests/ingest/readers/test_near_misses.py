"""Texts that speak of a format, or look a little like it, and are nobody's."""

from pathlib import Path

import pytest

from crosswind.ingest import readers
from crosswind.ingest.reader.lines import HEAD_BYTES
from crosswind.ingest.readers.formats import READERS

SOURCES = sorted(Path(readers.__file__).parent.rglob("*.py"))
DOCS = sorted((Path(__file__).parents[3] / "docs").rglob("*.md"))
SHELL_SNIPPET = """#
# This file is a bourne shell snippet, and is sourced by the
# ucf script for configuration.
#
# are looked for in the subdirectory ${filename}.md5sum.d/
#
# DEBUG=0
"""  # Debian's /etc/ucf.conf
SWITCHES = """# SERVICES_AUTHORITATIVE
#   If set to TRUE, the getservbyname{,_r}() function will assume
#   services.byservicename NIS map exists and is authoritative.
#SERVICES_AUTHORITATIVE=TRUE
"""  # glibc's /etc/default/nss
PROGRAM = (
    "#!/usr/bin/awk -f\n" + 19 * "# doesn't understand struct {...}\n" + '{ gsub(/ /, "") }\n'
)  # as mawk's decl.awk
GLOG = "I0101 00:00:00.000000 12 {}:10] {}\n"
NEAR = {
    "ucf.conf": SHELL_SNIPPET,
    "nss": SWITCHES,
    "types.txt": "# TYPE of what follows\n# HELP yourself\n",
    "resolv.conf": "nameserver 10.0.0.1\nsearch example.org\n",
    "decl.awk": PROGRAM,
    "notes.md": '# Notes\nLines such as `:::MLLOG {"key": "run_start", "time_ms": 1}` tell it.\n',
    "half.log": ':::MLLOG {"namespace": "", "time_ms": 1}\n:::MLLOG {"key": "run_start"}\n',
    "log.py": 'print(":::MLLOG {\\"key\\": 1, \\"time_ms\\": 2}")\nlogging.info("] DeepSpeedEngine configuration:")\n',
    "main.cpp": 'std::cout << "STARTING lbann with this command line:";\n',
    "sat.log": GLOG.format("sat_solver.cc", "3 conflicts") + GLOG.format("my_solver.cpp", "starting"),
    "results.csv": "alpha,objective\n0.1,3\n",
    "lp.csv": "iter,objective [s]\n1,3.4\n",
    "queue.json": '{"paginator":{"jobs":[{"a":1}]},"x":"accrue_time"}',
    "nested.json": '{"paginator":{"jobs":[{"accrue_time": 1}]}}',
    "later.json": '{"accrue_time": 1, "jobs":[{"a": 1}]}',
    "other.txt": "JOBID|STATE\n1|done\n",
    "short.txt": "JobID|State\n1|done\n",
}


@pytest.mark.parametrize("path", [*SOURCES, *DOCS], ids=lambda path: path.name)
def test_what_speaks_of_formats_is_in_none(path: Path) -> None:
    assert taken(path.name, path.read_bytes()) == []


@pytest.mark.parametrize("name", NEAR)
def test_what_looks_a_little_like_a_format_is_in_none(name: str) -> None:
    assert taken(name, NEAR[name].encode()) == []


def taken(name: str, content: bytes) -> list[str]:
    """Return the readers that would read it, by name."""
    return [reader.name for reader in READERS if reader.recognises(Path(name), content[:HEAD_BYTES])]


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("mllog", '[1,3]<stdout>::::MLLOG {"namespace": "", "time_ms": 1, "key": "run_start"}\n'),
        ("mllog", 'epoch 1\n3: :::MLLOG {"namespace": "", "time_ms": 1, "key": "run_start"}\n'),
        ("deepspeed", "[2024-01-01 00:00:00,1] [INFO] [config.py:997:print] DeepSpeedEngine configuration:\n"),
        ("lbann", "0: STARTING lbann with this command line: x\n"),
        ("caffe", GLOG.format("solver.cpp", "Solver scaffolding done.")),
        ("configurations", "a,maximize:tokens/s\n1,2\n"),
        ("squeue", "JOBID|STATE|USER\n1|RUNNING|ada\n"),
        ("sacct", "JobID|State|ExitCode\n1|COMPLETED|0:0\n"),
        ("prometheus", "# TYPE a gauge\na 5\n"),
        ("prometheus", '# no type\nup{job="node"} 1\n'),
        ("squeue_json", '{"meta": {"a": "{"}, "errors": [], "jobs": [{"account": "x", "accrue_time": 0}]}'),
    ],
)
def test_what_is_in_a_format_stays_in_it(name: str, text: str) -> None:
    assert taken("x", text.encode()) == [name]
