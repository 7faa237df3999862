from pathlib import Path

import pytest
from tests.docs.examples import shape
from tests.docs.tutorial import newcomer, typed


@pytest.mark.thorough
def test_every_command_of_the_tutorial_prints_what_the_tutorial_says(tmp_path: Path) -> None:
    """Two ranks train a dozen times; numbers, times and names of runs may differ."""
    wrong = [
        f"{example.command}\n--- documented\n{shape(example.output)}--- printed\n{shape(printed)}"
        for example, printed in typed(newcomer(tmp_path))
        if not example.matches(printed)
    ]
    assert not wrong, "\n\n".join(wrong)
