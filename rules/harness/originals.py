"""The inputs of an imported task's reference: original files, and the importer's facts."""

from __future__ import annotations

from collections.abc import Mapping

from kabuild.rule import Artifact, Context, attr

PRELOAD_OF_ORIGINALS = ("numpy", "torch", "torch._dynamo")
"""The imports of original files; the last one is for tensors without data."""

ORIGINAL_ATTRS: Mapping[str, attr.Attr] = {
    "originals": attr.files("Files of an imported task: original/<path> beside the reference."),
    "check": attr.files("Files of an imported task's own check, which 'validate' examines."),
    "library": attr.tree("Modules that the reference imports: library/ beside it."),
    "parameters": attr.table("The parameters of the reference, as parameters.json beside it."),
}


def reference_files(ctx: Context) -> dict[str, Artifact]:
    """The reference and its inputs, by path."""
    files: dict[str, Artifact] = {"task/reference.py": ctx.attrs["reference"]}
    for source in ctx.attrs["originals"]:
        files[f"task/original/{source.path}"] = source
    if ctx.attrs["library"]:
        files["task/library"] = ctx.attrs["library"]
    if ctx.attrs["parameters"]:
        files["task/parameters.json"] = ctx.literal(ctx.attrs["parameters"])
    return files
