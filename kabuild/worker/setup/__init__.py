"""The files that an operator installs, as ``kabuild worker config`` prints them."""

from kabuild.worker.setup.files import KINDS, files_of
from kabuild.worker.setup.site import Site

__all__ = ["KINDS", "Site", "files_of"]
