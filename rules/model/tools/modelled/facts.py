"""How the tools here answer: with facts, or with the reason why there are none."""

from __future__ import annotations

import json
import os
import resource
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch

from modelled.user_model import ModelError, described


def write_facts(out: Path, find: Callable[[], dict[str, Any]]) -> None:
    """Write what ``find`` returns, or the class and the sentence of its failure."""
    warnings.simplefilter("ignore")
    torch.set_num_threads(1)
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    output = os.dup(1)
    os.dup2(2, 1)  # the model may print
    try:
        facts = find()
    except ModelError as error:
        facts = {"refused": {"reason": error.reason, "why": error.why}}
    except MemoryError:
        facts = {"refused": {"reason": "TOO_LARGE", "why": "it needs more memory than there is"}}
    except Exception as error:  # noqa: BLE001 - foreign code raises what it likes
        facts = {"refused": {"reason": "FAILED", "why": described(error)}}
    os.dup2(output, 1)
    out.write_text(json.dumps(facts, indent=1))
