"""The view of an agent: its directories, freshly made.

Everything but toolchains is copied first, so that the table of mounts, which is readable in a
sandbox, does not name hidden directories of the host.
"""

from __future__ import annotations

import re
import shutil
import sys
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from order import Order, fill
from sandbox.namespaces import Bind, View, system_binds  # type: ignore[import-not-found]

WORKSPACE, HOME, KIT, FILES = "/workspace", "/home/agent", "/kabuild", "/agent"
"""The agent's paths of its working directory, its home, our tools, and its own files."""

JOURNAL = "/journal"
"""The journal, which survives an interrupted session; the agent sees it at the same path."""

SOCKET = f"{KIT}/run/check"
TMP_BYTES = 1 << 30
_TMP = "/tmp"  # noqa: S108 - the sandbox's own
_INTERNAL = ("/proc", "/dev", "/exec", "/sys", JOURNAL)
_ESCAPED = re.compile(r"\\([0-7]{3})")


@dataclass(frozen=True)
class Desk:
    """The directories of one session, as paths of the session's own.

    The agent may write ``workspace`` and ``home``; ``kit`` and ``given`` are copies of what it may
    read; ``nothing`` is an empty directory that hides others.
    """

    workspace: Path
    home: Path
    kit: Path
    given: Path
    nothing: Path

    @property
    def socket(self) -> Path:
        """Where the server of the checks listens."""
        return self.kit / "run" / "check"

    def read_only(self) -> tuple[str, ...]:
        """The read-only names in the working directory."""
        return tuple(sorted(path.name for path in self.given.iterdir()))

    def view(self, network: str, journal: Path | None = None) -> View:
        """The agent's whole view, under a network policy, with its journal if it keeps one."""
        binds = [
            *system_binds(),
            *(Bind(path, path) for path in toolchain_mounts()),
            *(Bind(str(self.nothing), path) for path in _kabuild_itself()),
            Bind(str(self.workspace), WORKSPACE, writable=True),
            *(Bind(str(self.given / n), f"{WORKSPACE}/{n}") for n in self.read_only()),
            Bind(str(self.home), HOME, writable=True),
            Bind(str(self.kit), KIT),
            Bind(str(self.kit / "agent"), FILES),
            *([Bind(str(journal), JOURNAL, writable=True)] if journal else ()),
        ]
        return View(
            binds=tuple(binds),
            tmpfs=((_TMP, TMP_BYTES),),
            cwd=WORKSPACE,
            hostname="agent",
            network=network == "host",
            loopback=network in {"loopback", "proxy"},
        )


def lay_out(root: Path, writable: Path, private: Path, kernel: str) -> Desk:
    """Make the directories from the input root ``root``.

    ``writable`` is where the agent's own go, ``private`` where ours do: two file systems, so
    that an agent that fills one up affects no other.
    """
    given, nothing = private / "given", private / "nothing"
    desk = Desk(writable / "workspace", writable / "home", private / "kit", given, nothing)
    for directory in (desk.workspace, desk.home, desk.nothing):
        directory.mkdir(parents=True)
    shutil.copytree(root / "desk", desk.given, copy_function=shutil.copyfile)
    shutil.move(desk.given / kernel, desk.workspace / kernel)
    (desk.kit / "run").mkdir(parents=True)
    for source, target in (("agent", "agent"), ("toolkit", "toolkit"), ("tools/client", "lib")):
        (desk.kit / target).mkdir()
        if (root / source).is_dir():
            shutil.copytree(root / source, desk.kit / target, dirs_exist_ok=True)
    (desk.kit / "kernel").write_text(kernel)
    program = desk.kit / "bin" / "kabuild-check"
    program.parent.mkdir()
    program.write_text(
        f"#!{sys.executable} -I\nimport sys\nsys.path.insert(0, '{KIT}/lib')\n"
        "from kabuild_check import main\nsys.exit(main(sys.argv[1:]))\n"
    )
    program.chmod(0o755)
    return desk


def variables(order: Order, prompt: str) -> dict[str, str]:
    """The placeholders of a definition, except those that need ports."""
    agent = order.agent
    return {
        "workspace": WORKSPACE,
        "home": HOME,
        "files": FILES,
        "kernel": f"{WORKSPACE}/{order.kernel}",
        "brief": f"{WORKSPACE}/BRIEF.md",
        "prompt": prompt,
        "prompt_file": f"{KIT}/prompt.md",
        "python": sys.executable,
        "cli": agent.cli,
        "model": agent.model,
        "seconds": f"{agent.seconds:g}",
        "turns": str(agent.turns),
        "tokens": str(agent.tokens),
        "dollars": f"{agent.dollars:g}",
        "trial": str(order.trial),
        "seed": str(order.seed),
        "journal": JOURNAL,
    }


def environment(
    order: Order, known: Mapping[str, str], secrets: Mapping[str, str]
) -> dict[str, str]:
    """The whole environment of an agent; it inherits only its secrets."""
    cli = [f"{order.agent.cli}/bin", order.agent.cli] if order.agent.cli else []
    paths = [f"{KIT}/bin", *cli, str(Path(sys.executable).parent), "/usr/local/bin", "/usr/bin"]
    ours = {
        "PATH": ":".join((*paths, "/bin")),
        "HOME": HOME,
        "TMPDIR": _TMP,
        "LANG": "C.UTF-8",
        "PYTHONPATH": f"{KIT}/lib",
        "PYTHONDONTWRITEBYTECODE": "1",
    }
    if "proxy" in known:
        names = ("HTTP_PROXY", "HTTPS_PROXY", "http_proxy", "https_proxy")
        ours |= dict.fromkeys(names, known["proxy"])
        ours |= dict.fromkeys(("NO_PROXY", "no_proxy"), "127.0.0.1,localhost")
    own = {name: fill(text, known) for name, text in order.agent.env.items()}
    return {**ours, **own, **secrets}


def _kabuild_itself() -> Iterator[str]:
    """Where kabuild itself is installed within the Python toolchain."""
    for entry in sys.path:
        installed = Path(entry, "kabuild")
        if installed.is_absolute() and installed.is_dir():
            yield str(installed)


def toolchain_mounts() -> Iterator[str]:
    """The action's mounts besides its inputs and the system: mostly toolchains."""
    system = {bind.target for bind in system_binds()}
    for line in Path("/proc/self/mountinfo").read_text().splitlines():
        path = _ESCAPED.sub(lambda match: chr(int(match[1], 8)), line.split(" ")[4])
        inside = any(f"{path}/".startswith(f"{other}/") for other in (*_INTERNAL, *system))
        if path not in {"/", _TMP} and not inside:
            yield path
