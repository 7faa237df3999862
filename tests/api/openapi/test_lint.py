"""Spectral on the description of the API."""

import json
import subprocess
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
from tests.needs import node_module

RULES = Path(__file__).parents[3] / ".spectral.yaml"


def linted(document: Mapping[str, Any], folder: Path) -> "subprocess.CompletedProcess[str]":
    written = folder / "openapi.json"
    written.write_text(json.dumps(document, indent=1))
    command = [str(node_module(".bin/spectral")), "lint", str(written), "--ruleset", str(RULES)]
    return subprocess.run([*command, "--fail-severity", "hint"], capture_output=True, text=True, check=False)


@pytest.mark.thorough
def test_spectral_finds_nothing(document: Mapping[str, Any], tmp_path: Path) -> None:
    done = linted(document, tmp_path)
    assert done.returncode == 0, done.stdout[-3000:] + done.stderr[-1000:]


@pytest.mark.thorough
def test_spectral_finds_what_our_rules_forbid(tmp_path: Path) -> None:
    answer = {"description": "No.", "content": {"application/json": {"schema": {"type": "string"}}}}
    operation = {"operationId": "ListRuns", "summary": "List", "description": "List.", "responses": {"401": answer}}
    info = {"title": "x", "version": "1", "description": "x", "contact": {"name": "x"}}
    document = {"openapi": "3.1.0", "info": info, "servers": [{"url": "/"}], "paths": {"/x": {"get": operation}}}
    done = linted(document, tmp_path)
    assert "crosswind-operation-id" in done.stdout
    assert "crosswind-refusals-are-problems" in done.stdout
