"""How hatchling makes the wheel of racflow: its version, the program in it, and the platforms of its name.

RACFLOW_BINARY names a program that is there, as a release does; otherwise Go builds it. GOOS and GOARCH choose another platform.
RACFLOW_VERSION replaces the version of the code: a snapshot has its own. RACFLOW_LICENSES names the licences of what the program links.
"""

from __future__ import annotations

import os
import re
import subprocess
import tempfile
from pathlib import Path
from typing import Any
from urllib.parse import urljoin

from hatchling.builders.hooks.plugin.interface import BuildHookInterface
from hatchling.metadata.plugin.interface import MetadataHookInterface

PAGE = "https://github.com/racflow/racflow/blob/main/sdk/python/racflow/"

# By the processor in the program's header. A static program needs no C library, so one wheel is for both of Linux.
# Go 1.26 needs macOS 12.
PLATFORMS = {
    b"\x7fELF\x3e\x00": "manylinux_2_17_x86_64.musllinux_1_1_x86_64",
    b"\x7fELF\xb7\x00": "manylinux_2_17_aarch64.musllinux_1_1_aarch64",
    b"\xcf\xfa\xed\xfe\x07\x00\x00\x01": "macosx_12_0_x86_64",
    b"\xcf\xfa\xed\xfe\x0c\x00\x00\x01": "macosx_12_0_arm64",
}


def platforms(program: Path) -> str:
    """The platform tags of a wheel with this program. ValueError: racflow has no wheels for its platform."""
    with program.open("rb") as file:
        head = file.read(20)
    tags = PLATFORMS.get(head[:4] + head[18:20]) or PLATFORMS.get(head[:8])
    if tags is None:
        raise ValueError(f"{program} is no program for Linux or macOS on x86-64 or arm64")
    return tags


class Metadata(MetadataHookInterface):
    """Takes the version from the Go code, and the description from the package's page, whose links it makes absolute."""

    def update(self, metadata: dict[str, Any]) -> None:
        code = Path(self.root, "../../engine/internal/workspace/open.go").read_text(encoding="utf-8")
        found = re.search(r'^const release = "(.+)"$', code, re.MULTILINE)
        assert found, "engine/internal/workspace/open.go has no release"
        metadata["version"] = os.environ.get("RACFLOW_VERSION") or found[1]
        page = Path(self.root, "racflow/README.md").read_text(encoding="utf-8")
        text = re.sub(r"\]\((?!#)([^)\s]+)\)", lambda m: f"]({urljoin(PAGE, m[1])})", page)
        metadata["readme"] = {"content-type": "text/markdown", "text": text}


class Program(BuildHookInterface[Any]):
    """Puts the program where pip puts commands."""

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        self.scratch = tempfile.TemporaryDirectory()
        given = os.environ.get("RACFLOW_BINARY")
        program = Path(given or f"{self.scratch.name}/racflow").absolute()
        if not given:
            # No -trimpath: with it, Go would compile all packages again that `make build` has compiled.
            command = ["go", "build", "-ldflags=-s -w", "-o", str(program), "./cmd/racflow"]
            subprocess.run(command, cwd=Path(self.root, "../.."), env=os.environ | {"CGO_ENABLED": "0"}, check=True)
        build_data["pure_python"] = False
        build_data["tag"] = f"py3-none-{platforms(program)}"
        build_data["shared_scripts"] = {str(program): "racflow"}
        if licenses := os.environ.get("RACFLOW_LICENSES"):
            build_data["extra_metadata"] = {licenses: Path(licenses).name}

    def finalize(self, version: str, build_data: dict[str, Any], artifact_path: str) -> None:
        self.scratch.cleanup()
