"""Write LICENSE-THIRD-PARTY: the licences of the Rust crates that are compiled into the wheel.

    python tools/third_party.py [--check]

The crates are those that `cargo metadata` reaches from onefold by normal dependencies, on the
platforms of `deny.toml`. Of several licences MIT is taken, or the first that a file is shipped for.
With ``--check`` nothing is written; the exit code is 1 if the file is out of date.
"""

import json
import subprocess
import sys
import tomllib
from collections import defaultdict
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
FILE = ROOT / "LICENSE-THIRD-PARTY"
FEATURES = "python,compression"
KINDS = ("MIT", "ZLIB", "BSD", "APACHE", "LICENSE", "LICENCE", "COPYING", "UNLICENSE")
"""Parts of names of files, the preferred ones first."""

HEAD = """\
onefold is licensed under MIT or Apache-2.0 (LICENSE-MIT, LICENSE-APACHE). Its wheels contain the
Rust crates below, under these licences. `make licences` writes this file.
"""


def metadata():
    """Return what cargo knows about all packages, and how they depend on one another."""
    targets = tomllib.loads((ROOT / "deny.toml").read_text(encoding="utf-8"))["graph"]["targets"]
    command = ["cargo", "metadata", "--locked", "--format-version", "1", "--features", FEATURES]
    command += [f"--filter-platform={target}" for target in targets]
    return json.loads(subprocess.run(command, check=True, capture_output=True, cwd=ROOT).stdout)


def compiled_in(data):
    """Return the packages that normal dependencies lead to, without onefold itself."""
    nodes = {node["id"]: node for node in data["resolve"]["nodes"]}
    root = data["resolve"]["root"]
    reached, queue = set(), [root]
    while queue:
        for dependency in nodes[queue.pop()]["deps"]:
            is_normal = any(kind["kind"] is None for kind in dependency["dep_kinds"])
            if is_normal and dependency["pkg"] not in reached:
                reached.add(dependency["pkg"])
                queue.append(dependency["pkg"])
    packages = [package for package in data["packages"] if package["id"] in reached - {root}]
    return sorted(packages, key=lambda package: (package["name"], package["version"]))


def texts_of(package):
    """Return the texts of the licence of a package: the preferred one, and all notices."""
    folder = Path(package["manifest_path"]).parent
    files = [path for path in sorted(folder.iterdir()) if path.is_file()]
    licences = [(kind, path) for kind in KINDS for path in files if kind in path.name.upper()]
    notices = [path for path in files if path.name.upper().startswith(("NOTICE", "COPYING."))]
    chosen = [path for _, path in licences[:1] if path not in notices]
    return [path.read_text(encoding="utf-8").strip() for path in [*chosen, *notices]]


def written(packages):
    """Return the file: texts that crates share are there once."""
    crates = defaultdict(list)
    for package in packages:
        name = f"{package['name']} {package['version']} ({package['license']})"
        missing = f"These crates ship no licence file. Their manifests name {package['license']}."
        for text in texts_of(package) or [missing]:
            crates[text].append(name)
    rule = "=" * 80
    parts = [f"{rule}\n" + "\n".join(names) + f"\n\n{text}\n" for text, names in crates.items()]
    return "\n".join([HEAD, *parts])


def main():
    """Write the file, or compare it."""
    text = written(compiled_in(metadata()))
    if sys.argv[1:] == ["--check"]:
        if not FILE.is_file() or FILE.read_text(encoding="utf-8") != text:
            sys.exit(f"{FILE.name} is out of date: run make licences")
        return
    FILE.write_text(text, encoding="utf-8")
    print(f"wrote {FILE.name}")


if __name__ == "__main__":
    main()
