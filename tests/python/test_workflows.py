"""Workflows run actions that nobody can change: each is pinned to a commit."""

import re
from pathlib import Path

import pytest

WORKFLOWS = sorted((Path(__file__).parents[2] / ".github" / "workflows").glob("*.y*ml"))


@pytest.mark.parametrize("path", WORKFLOWS, ids=lambda path: path.name)
def test_actions_are_pinned_to_commits(path):
    used = re.findall(r"^\s*(?:-\s*)?uses:\s*(.*)$", path.read_text(encoding="utf-8"), re.M)
    assert used
    pinned = re.compile(r"[\w.-]+/[\w./-]+@[0-9a-f]{40} # v\d+(\.\d+)*")
    assert [action for action in used if not pinned.fullmatch(action)] == []
    commits = {}
    for action in used:
        name, commit = action.split("@")
        assert commits.setdefault(name, commit) == commit, f"{name} is pinned to two commits"
