"""Imagenette by name: downloaded once through torchvision, or a sentence that says what to do."""

from __future__ import annotations

from pathlib import Path
from typing import Any
from urllib.error import URLError

import pytest

pytest.importorskip("torchvision", reason="needs torchvision")

from flopwatch.errors import UsageError
from flopwatch.training.data import find, imagenette
from tests.unit.training.data.trees import tree

pytestmark = pytest.mark.torch
WNIDS = [each.wnid for each in imagenette.classes()]


def answering(monkeypatch: pytest.MonkeyPatch, error: Exception | None) -> list[dict[str, Any]]:
    """In place of torchvision's: makes a small tree, or fails as a network does; the calls."""
    calls = []

    def play(root: Path, **options: Any) -> None:
        calls.append(options)
        folder = tree(root / "imagenette2-160", dict.fromkeys(WNIDS, 2), dict.fromkeys(WNIDS, 1))
        (root / "imagenette2-160.tgz").touch()
        assert folder.is_dir()
        if error:
            raise error

    monkeypatch.setattr("torchvision.datasets.Imagenette", play)
    return calls


def test_downloaded_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    calls = answering(monkeypatch, None)
    first = find("imagenette-160", cache=tmp_path)
    assert find("imagenette-160", cache=tmp_path) == first
    assert calls == [{"size": "160px", "download": True}]
    assert first.root == tmp_path / "imagenette2-160"
    assert (len(first.train), len(first.val)) == (2 * 10, 10)
    assert {path.name for path in tmp_path.iterdir()} == {"imagenette2-160", ".imagenette2-160.lock"}


@pytest.mark.parametrize(
    "error", [URLError("Name or service not known"), RuntimeError("File not found or corrupted."), EOFError("cut")]
)
def test_without_network(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, error: Exception) -> None:
    answering(monkeypatch, error)
    with pytest.raises(UsageError) as refused:
        find("imagenette-160", cache=tmp_path)
    assert refused.value.happened == f"imagenette2-160 cannot be downloaded: {str(error).removesuffix('.')}."
    assert "or use --data made:imagenette, which needs none" in refused.value.todo
    assert not (tmp_path / "imagenette2-160").exists()
    assert [path.name for path in tmp_path.iterdir()] == [".imagenette2-160.lock"]


def test_folder_of_that_name_comes_first(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The archive of version 1 makes a folder that is called as the name."""
    monkeypatch.chdir(tmp_path)
    calls = answering(monkeypatch, None)
    tree(Path("imagenette-160"), {"cat": 1, "dog": 1}, {"cat": 1, "dog": 1})
    assert find("imagenette-160").classes == ("cat", "dog")
    assert calls == []
