"""Models that a Hugging Face config.json in a local folder describes: built without weights, nothing is downloaded.

`config` reads the file and finds the model's class, `building` makes the model, `feeding` what its forward wants, `caching` the
cache of tokens that were seen before.
"""

from __future__ import annotations

from flopwatch.subjects.model.huggingface.building import builder
from flopwatch.subjects.model.huggingface.config import is_config, offline

__all__ = ["builder", "is_config", "offline"]
