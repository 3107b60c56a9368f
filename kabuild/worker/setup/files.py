"""The files of one way to start a fleet, from the templates beside this file."""

from __future__ import annotations

from dataclasses import replace

from jinja2 import Environment, PackageLoader, StrictUndefined

from kabuild.worker.setup.site import Site
from kabuild.worker.shim_text import shim_text

_IMAGES = (
    "common/Containerfile.node",
    "common/Containerfile.engine",
    "common/Containerfile.server",
)
KINDS = {
    "systemd": (
        "systemd/kabuild.conf",
        "systemd/kabuild-server.service",
        "systemd/kabuild-node.service",
        "systemd/kabuild-casd.service",
        "systemd/kabuild-worker.service",
        "systemd/get-buildbox",
        "common/buildgrid.yaml",
    ),
    "compose": ("compose/compose.yaml", "common/buildgrid.yaml", *_IMAGES),
    "kubernetes": (
        "kubernetes/server.yaml",
        "kubernetes/pool.yaml",
        "common/buildgrid.yaml",
        *_IMAGES,
    ),
    "buildgrid": ("common/buildgrid.yaml",),
    "buildbox": ("systemd/get-buildbox",),
}
"""The templates of each kind; a file is named as its template, without the directory."""

_COMPOSED = {"host": "server", "database": "postgresql+psycopg2://kabuild@database/kabuild"}
"""Names that the Compose file itself gives."""


def files_of(kind: str, site: Site) -> dict[str, str]:
    """The files of one of ``KINDS``, by name; kinds with nodes include the program of workers."""
    templates = Environment(
        loader=PackageLoader("kabuild.worker.setup"),
        autoescape=False,  # noqa: S701 - none of the files is HTML
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
    )
    if kind == "compose":
        site = replace(site, **_COMPOSED)  # type: ignore[arg-type]
    files = {
        name.rpartition("/")[2]: templates.get_template(name).render(site=site)
        for name in KINDS[kind]
    }
    if kind not in {"buildgrid", "buildbox"}:
        files[site.program.rpartition("/")[2]] = shim_text(site.socket)
    return files
