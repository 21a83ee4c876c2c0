"""flopwatch itself: modules of PyTorch, and the text of networks of Caffe."""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import Any

from peers.adapters import NotForThisError
from peers.answers import Count
from peers.caffe_nets import NETS
from peers.cases import Case

VERSION_OF = "flopwatch"


def prepare(case: Case) -> Any:
    """A subject, or the name of a file; models are built outside of the time that is measured."""
    from flopwatch.subjects.model import ModelSubject, Request

    if case.build is not None:
        model, arguments = case.build()
        return ModelSubject(case.name, "torch", model, arguments, "the case's own input")
    if case.name not in NETS:
        raise NotForThisError
    path = Path(tempfile.mkdtemp()) / "deploy.prototxt"
    path.write_text(NETS[case.name]())
    return Request(str(path))


def count(case: Case, subject: Any) -> Count:
    """Estimate one inference, or a training step, of which forward and backward are taken."""
    from flopwatch import estimating
    from flopwatch.subjects.model import Request

    if isinstance(subject, Request):
        estimated = estimating.estimate_model(subject)
    else:
        estimated = estimating.estimate_subject(subject, train=case.train)
    others = sum(estimated.flop().values()) - 2 * estimated.mac
    return Count(estimated.mac, "MAC", tuple(each.name for each in estimated.unknown), max(0, others))
