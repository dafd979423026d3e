"""What is published: the entry in the MCP registry, and the settings for clients in the README."""

import base64
import json
import re
import runpy
import shlex
import tomllib
import urllib.parse
from pathlib import Path

import pytest

import pysbx_sandbox

ROOT = Path(__file__).resolve().parent.parent
README = (ROOT / "README.md").read_text("utf-8")
NAME = "io.github.pysbx/pysbx"
COMMAND = ["uvx", "pysbx"]
CLIENTS = {
    *("Claude Code", "Codex", "Gemini CLI", "Cursor", "VS Code", "Claude Desktop", "Windsurf"),
    *("LM Studio", "Zed", "Goose", "opencode"),
}
# the parts of the registry's schema 2025-12-11 that this entry meets; no network in a test
TOP = {"name", "description", "version", "packages", "title", "$schema", "repository"}
PACKAGE = {"registryType", "identifier", "version", "runtimeHint", "transport"}
# keys that clients set on the way to {"pysbx": …}
AROUND = {"mcpServers", "servers", "context_servers", "mcp"}


def entry():
    if not (ROOT / ".ci").is_dir():
        pytest.skip(".ci is not part of a source distribution")
    return json.loads((ROOT / ".ci" / "server.json").read_text("utf-8"))


def clients():
    """Return the README's table of clients: names in the first cell -> settings in the second."""
    table = README.partition("| client | settings |\n|---|---|\n")[2].partition("\n\n")[0]
    rows = [row.strip("|").split("|", 1) for row in table.splitlines()]
    return {name.strip(): settings.strip() for name, settings in rows}


def snippets():
    """Return every JSON in the README: fences, and code spans that hold an object or a member."""
    fences = re.findall(r"(?ms)^```json\n(.*?)^```$", README)
    prose = re.sub(r"(?ms)^```.*?^```$", "", README)
    spans = [
        span for span in re.findall(r"`([^`\n]+)`", prose) if re.match(r'\{"|\["|"\w+":', span)
    ]
    spans += re.findall(r"--add-mcp '([^']+)'", prose)
    return fences + [span if span[0] in "{[" else "{" + span + "}" for span in spans]


def command(settings):
    """Return the command line that a client makes of its settings."""
    inner = settings
    while inner.keys() & AROUND:
        inner = inner[next(iter(inner.keys() & AROUND))]
    inner = inner.get("pysbx", inner)
    first = inner["command"]
    return [*(first if isinstance(first, list) else [first]), *inner.get("args", [])]


def test_the_entry_is_what_the_generator_makes():
    made = entry()
    again = runpy.run_path(str(ROOT / ".ci" / "server_json.py"))["made"]()
    assert (ROOT / ".ci" / "server.json").read_text("utf-8") == again, "run .ci/server_json.py"
    assert json.loads(again) == made


def test_the_entry_is_one_that_the_registry_takes():
    made = entry()
    assert made["name"] == NAME and re.fullmatch(r"[a-zA-Z0-9.-]+/[a-zA-Z0-9._-]+", NAME)
    assert made["$schema"].endswith("/2025-12-11/server.schema.json")
    assert 1 <= len(made["description"]) <= 100 and 1 <= len(made["title"]) <= 100
    assert made.keys() <= TOP
    [package] = made["packages"]
    assert package.keys() == PACKAGE
    assert package["registryType"] == "pypi" and package["identifier"] == "pysbx"
    assert package["runtimeHint"] == "uvx" and package["transport"] == {"type": "stdio"}


def test_the_entry_has_the_version_and_the_name_of_the_project():
    project = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]
    made = entry()
    assert made["version"] == made["packages"][0]["version"] == pysbx_sandbox.__version__
    assert project["name"] == made["packages"][0]["identifier"]
    assert project["name"] in project["scripts"], "uvx starts the script of the package's name"


def test_the_readme_says_whose_the_package_is():
    assert README.count(f"<!-- mcp-name: {NAME} -->") == README.count("mcp-name: ") == 1


def test_every_json_in_the_readme_parses_and_starts_pysbx():
    found = snippets()
    assert len(found) >= 6, found
    parsed = [json.loads(text) for text in found]
    objects = [each for each in parsed if isinstance(each, dict)]
    assert [command(each) for each in objects] == [COMMAND] * len(objects)
    # what is not an object is a list of args
    assert [each for each in parsed if isinstance(each, list) and each[0] != "pysbx"] == []


def test_the_deep_link_for_cursor_carries_the_command():
    [link] = re.findall(r"\((cursor://[^)\s]+)\)", README)
    url = urllib.parse.urlsplit(link)
    assert (url.netloc, url.path) == ("anysphere.cursor-deeplink", "/mcp/install")
    query = urllib.parse.parse_qs(url.query, strict_parsing=True)
    assert query["name"] == ["pysbx"]
    settings = json.loads(base64.b64decode(query["config"][0], validate=True))
    assert settings == {"command": "uvx", "args": ["pysbx"]}


def test_every_client_has_settings_that_start_uvx_pysbx():
    rows = clients()
    assert {name for row in rows for name in row.split(", ")} - {"any other"} == CLIENTS
    [below] = re.findall(r"(?ms)^```json\n(.*?)^```$", README)
    for row, settings in rows.items():
        told = settings + below if "the JSON below" in settings else settings
        assert "uvx" in told and "pysbx" in told, row


def test_the_commands_for_clients_end_with_the_command():
    spans = [span for text in clients().values() for span in re.findall(r"`([^`]+)`", text)]
    added = [shlex.split(s) for s in spans if re.match(r"\w+ mcp add ", s)]
    assert {argv[0] for argv in added} == {"claude", "codex", "gemini"}
    assert all(argv[3] == "pysbx" and argv[-2:] == COMMAND for argv in added), added


def test_the_settings_in_toml_and_yaml_start_uvx_pysbx():
    codex = next(text for name, text in clients().items() if name == "Codex")
    spans = re.findall(r"`([^`]+)`", codex.partition("config.toml`:")[2])
    settings = tomllib.loads("\n".join(spans))["mcp_servers"]["pysbx"]
    assert command(settings) == COMMAND and settings["startup_timeout_sec"] >= 20
    assert re.search(r"pysbx: \{type: stdio, .*cmd: uvx, args: \[pysbx\]\}", clients()["Goose"])
