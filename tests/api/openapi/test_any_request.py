"""Requests that schemathesis derives from the description: no failure, no status and no content that it does not name.

Source: schemathesis.readthedocs.io, 4.x.
"""

import shutil
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest
import schemathesis
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from schemathesis.checks import not_a_server_error
from schemathesis.openapi.checks import AcceptedNegativeData  # noqa: F401
