"""The glossary of the model names classes that exist, and all that matter."""

from __future__ import annotations

import importlib
import pkgutil
import re

from kabuild import model


def test_the_glossary_names_what_the_modules_define() -> None:
    modules = [
        importlib.import_module(f"{model.__name__}.{found.name}")
        for found in pkgutil.iter_modules(model.__path__)
    ]
    defined = {name for module in modules for name in vars(module)}
    named = set(re.findall(r"``([A-Z][A-Za-z]+)``", model.__doc__ or ""))

    assert named <= defined
    nouns = {"Label", "Target", "Action", "ActionGraph", "Gate", "Verdict", "TaskResult", "Digest"}
    assert nouns <= named
