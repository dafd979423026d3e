"""Write .ci/server.json, the entry in the MCP registry, from pyproject.toml and the version."""

import json
import re
import tomllib
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
SCHEMA = "https://static.modelcontextprotocol.io/schemas/2025-12-11/server.schema.json"
OWNER = "io.github.pysbx"


def made() -> str:
    """Return the text of server.json; the version is read, not imported: any Python will do."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]
    source = (ROOT / "pysbx_sandbox.py").read_text("utf-8")
    found = re.search(r'(?m)^__version__ = "([^"]+)"$', source)
    if found is None:
        raise SystemExit("pysbx_sandbox.py has no __version__")
    package = {
        "registryType": "pypi",
        "identifier": project["name"],
        "version": found[1],
        "runtimeHint": "uvx",
        "transport": {"type": "stdio"},
    }
    entry = {
        "$schema": SCHEMA,
        "name": f"{OWNER}/{project['name']}",
        "title": project["name"],
        "description": project["description"],
        "version": found[1],
        "packages": [package],
    }
    if repository := project.get("urls", {}).get("Repository"):
        entry["repository"] = {"url": repository, "source": "github"}
    return json.dumps(entry, indent=2) + "\n"


if __name__ == "__main__":
    Path(__file__).with_name("server.json").write_text(made(), "utf-8")
