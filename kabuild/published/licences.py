"""The licences of imported tasks, for bundles with their original files."""

from __future__ import annotations

from kabuild.base.errors import BundleError, Reason
from kabuild.model.label import repository_of
from kabuild.pipeline import Summary


def licences(summary: Summary) -> dict[str, str]:
    """The licences of all external repositories in an evaluation, by ``@name``.

    Raises BundleError if a licence forbids redistribution.
    """
    external = summary.plan.loaded.loader.external
    found: dict[str, str] = {}
    for name in sorted({repository_of(row.label.package) for row in summary.table} - {""}):
        terms = external.lock(name).terms
        if not terms.redistribute:
            raise BundleError(
                Reason.NOT_PUBLISHABLE,
                f"the bundle would hold files of '@{name}', whose licence ({terms.licence}) does "
                "not allow redistribution",
                hint="publish it without tasks of this repository",
            )
        found[f"@{name}"] = terms.licence
    return found
