"""Layer 2c: from WORKSPACE.toml, BUILD.toml and rule files to validated targets.

Public names, in the order of use::

    root = find_workspace(Path.cwd())            # NO_WORKSPACE says what to do
    workspace = load_workspace(root)             # WORKSPACE.toml, frozen
    loader = Loader(workspace)                   # reads packages lazily, each once
    labels = expand(loader, ["//tasks/..."], package=workspace.package_of(Path.cwd()))
    target = loader.target(labels[0])            # a model.target.Target, with its position
    rule = loader.rule(target)
    source_roots(root)                           # where the roots of Source paths lie

Every error is a LoadError with file and line, or a UsageError about a pattern.
"""

from typing import TYPE_CHECKING

from kabuild.base.lazy import lazy_names

if TYPE_CHECKING:
    from kabuild.loading.build_file import Package
    from kabuild.loading.loader import Loader
    from kabuild.loading.patterns import TagFilter, expand
    from kabuild.loading.roots import builtin_root, find_workspace, kabuild_root, source_roots
    from kabuild.loading.rule_index import RuleIndex
    from kabuild.loading.workspace import Workspace, load_workspace

__all__ = [
    "Loader",
    "Package",
    "RuleIndex",
    "TagFilter",
    "Workspace",
    "builtin_root",
    "expand",
    "find_workspace",
    "kabuild_root",
    "load_workspace",
    "source_roots",
]

__getattr__ = lazy_names(
    __name__,
    {
        "Loader": "loader",
        "Package": "build_file",
        "RuleIndex": "rule_index",
        "TagFilter": "patterns",
        "Workspace": "workspace",
        "builtin_root": "roots",
        "expand": "patterns",
        "find_workspace": "roots",
        "kabuild_root": "roots",
        "load_workspace": "workspace",
        "source_roots": "roots",
    },
)
