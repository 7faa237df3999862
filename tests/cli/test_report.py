import re
import shutil
from pathlib import Path

import pytest
from tests.cli.asking import Ask
from tests.cli.conftest import run_of
from tests.dashboards.test_studies_page import STUDY, search

from crosswind.data.schema.run import cohort_digest
from crosswind.data.store.store import Store

LINES_OF_FIGURES = 300  # lines and curves in a PDF; those of tables are fewer


def test_a_report_of_a_run_is_one_file_that_asks_for_nothing(verb: Ask, tmp_path: Path) -> None:
    file = tmp_path / "run.html"
    code, said, _ = verb("report", "toy-05", "--html", str(file))
    assert (code, said) == (0, f"report of toy-05: {file}\n")
    html = file.read_text()
    assert not re.search(
        r'<(?:link|form|img|iframe)\b|<a\b[^>]* href="(?!#)|<[a-z]+\b[^>]* (?:src|action|data-link)="', html
    )
    assert "default-src 'none'" in html
    assert '<p class="links"' not in html, "words that led elsewhere"
    assert html.count("<script>") == 4
    assert html.count('<script type="application/json" data-for=') == html.count("<figure") > 0
    assert "crumbs" in html


@pytest.mark.parametrize("of", ["study", "cohort"])
def test_a_study_and_a_cohort_have_reports_too(
    verb: Ask, home_to_ask: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, of: str
) -> None:
    home, file = Path(shutil.copytree(home_to_ask, tmp_path / "home")), tmp_path / "report.html"
    monkeypatch.setenv("CROSSWIND_HOME", str(home))
    with Store.open(home) as store:
        search(store, STUDY, [0.4, 0.2])
    name = STUDY.name if of == "study" else cohort_digest(run_of("toy", 0, {"batch": 8, "fused": True}))
    assert verb("report", name, "--html", str(file))[0] == 0
    html = file.read_text()
    assert ("is the best so far, 200 ms" in html) is (of == "study")
    assert ("Its slowest runs" in html) is (of == "cohort")
    assert html.count('data-figure="') > 0
    assert "default-src 'none'" in html


def test_a_server_gives_the_same_report(verb: Ask, server_to_ask: str, tmp_path: Path) -> None:
    here, there = tmp_path / "here.html", tmp_path / "there.html"
    assert verb("report", "toy-05", "--html", str(here))[0] == 0
    assert verb("report", "toy-05", "--html", str(there), "--server", server_to_ask)[0] == 0
    assert _timeless(here) == _timeless(there)


def _timeless(file: Path) -> str:
    return re.sub(r"A Crosswind report, .*?</time>", "", file.read_text())


def test_a_report_names_what_there_is_and_what_it_needs(verb: Ask, tmp_path: Path) -> None:
    file = str(tmp_path / "none")
    code, _, complaint = verb("report", "nothing-of-this-name", "--html", file)
    assert (code, "is no run, study or cohort: `crosswind runs`" in complaint) == (2, True)
    assert verb("report")[0] == 2
    code, _, complaint = verb("report", "--html", str(tmp_path / "no" / "folder"))
    assert "cannot be written" in complaint
    assert not Path(file).exists()


def test_a_pdf_needs_chromium_and_says_so(verb: Ask, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    code, _, complaint = verb("report", "--pdf", str(tmp_path / "run.pdf"))
    assert (code, "no Chromium on PATH: install it (`apt install chromium`" in complaint) == (75, True)


@pytest.mark.skipif(not shutil.which("chromium"), reason="needs Chromium")
def test_a_report_is_printed_by_chromium(verb: Ask, tmp_path: Path) -> None:
    file = tmp_path / "run.pdf"
    assert verb("report", "toy-05", "--pdf", str(file))[0] == 0
    from tests.end_to_end.looks import strokes  # noqa: PLC0415 - needs playwright, which comes with Chromium's tests

    assert file.read_bytes().startswith(b"%PDF")
    assert strokes(file.read_bytes()) > LINES_OF_FIGURES
