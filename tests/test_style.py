"""The rules of the project as tests: imports, docstrings, sizes, tools, and documents that are true."""

import ast
import io
import re
import subprocess
import sys
import tokenize
from collections.abc import Iterator
from pathlib import Path

import pytest

import pysbx
import pysbx_sandbox

SANDBOX_CODE_LINES = 1916  # of pysbx_sandbox.py as measured; the aim is 800
SERVER_CODE_LINES = 627  # of pysbx.py; the aim is 350
FUNCTION_CODE_LINES = 50

ROOT = Path(__file__).resolve().parent.parent
MODULES = ("pysbx_sandbox.py", "pysbx.py")
Function = ast.FunctionDef | ast.AsyncFunctionDef
NO_CODE = {
    tokenize.COMMENT,
    tokenize.NL,
    tokenize.NEWLINE,
    tokenize.INDENT,
    tokenize.DEDENT,
    tokenize.ENDMARKER,
}
# hosts of package and image registries, in two parts so that this file does not hold them
REGISTRIES = [
    f"{name}.{end}"
    for name, end in (
        ("pypi", "org"),
        ("pythonhosted", "org"),
        ("docker", "io"),
        ("docker", "com"),
        ("ghcr", "io"),
        ("gcr", "io"),
        ("quay", "io"),
        ("mcr.microsoft", "com"),
        ("public.ecr", "aws"),
        ("npmjs", "org"),
    )
]
BUILD_MACHINE = re.compile(r"/work/(?!script\.py)")  # a sandbox has /work/script.py, too


def parsed(module: str) -> tuple[str, ast.Module]:
    source = (ROOT / module).read_text(encoding="utf-8")
    return source, ast.parse(source)


def functions(tree: ast.AST) -> Iterator[Function]:
    return (node for node in ast.walk(tree) if isinstance(node, Function))


def code_lines(module: str) -> set[int]:
    """Return the numbers of the lines that are neither blank nor comment nor docstring."""
    source, tree = parsed(module)
    found: set[int] = set()
    for token in tokenize.generate_tokens(io.StringIO(source).readline):
        if token.type not in NO_CODE:
            found |= set(range(token.start[0], token.end[0] + 1))
    for node in ast.walk(tree):
        if isinstance(node, ast.Module | ast.ClassDef | Function) and ast.get_docstring(node):
            docstring = node.body[0]
            found -= set(range(docstring.lineno, (docstring.end_lineno or 0) + 1))
    lines = source.splitlines()
    return {number for number in found if lines[number - 1].strip()}


def imported(module: str) -> set[str]:
    """Return the top-level names of all imports, wherever they stand."""
    names = set()
    for node in ast.walk(parsed(module)[1]):
        if isinstance(node, ast.Import):
            names |= {alias.name.partition(".")[0] for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            names.add((node.module or ".").partition(".")[0] if not node.level else ".")
    return names


def git_files(*options: str) -> list[Path]:
    argv = ["git", "-c", "safe.directory=*", "ls-files", "-z", *options]
    try:
        done = subprocess.run(argv, cwd=ROOT, capture_output=True)
    except FileNotFoundError:
        return []
    return [
        ROOT / name for name in done.stdout.decode().split("\0") if name and not done.returncode
    ]


def project_files() -> list[Path]:
    """Return what is committed or will be; in an unpacked source distribution, all of it."""
    found = git_files("--cached", "--others", "--exclude-standard") or list(ROOT.rglob("*"))
    hidden = {".git", "__pycache__", ".venv", ".pytest_cache", ".mypy_cache", ".ruff_cache"}
    kept = [path for path in found if path.is_file() and not hidden & set(path.parts)]
    assert ROOT / "pysbx.py" in kept
    return kept


def tool(*words: str) -> None:
    """Run a tool of this interpreter; that it is missing is a failure, not a reason to skip."""
    done = subprocess.run([sys.executable, "-m", *words], cwd=ROOT, capture_output=True, text=True)
    assert done.returncode == 0, f"{' '.join(words)}:\n{done.stdout[-4000:]}{done.stderr[-2000:]}"


# ---- the modules


def test_the_sandbox_imports_the_standard_library_and_nothing_else() -> None:
    assert imported("pysbx_sandbox.py") <= sys.stdlib_module_names


def test_the_server_imports_the_sdk_and_the_sandbox_and_nothing_else() -> None:
    """Parts of the SDK by name: pydantic describes parameters, the others are its HTTP server."""
    others = imported("pysbx.py") - sys.stdlib_module_names
    assert others - {"pydantic", "uvicorn", "starlette"} == {"mcp", "pysbx_sandbox"}


def test_the_sandbox_works_when_it_is_copied_alone(tmp_path: Path) -> None:
    copy = tmp_path / "pysbx_sandbox.py"
    copy.write_bytes((ROOT / "pysbx_sandbox.py").read_bytes())
    code = "import pysbx_sandbox as s; print(s.__file__, s.read_metadata('').dependencies)"
    argv = [sys.executable, "-S", "-B", "-W", "error", "-c", code]
    done = subprocess.run(argv, cwd=tmp_path, capture_output=True, text=True)
    assert (done.stdout, done.stderr) == (f"{copy} ()\n", "")


@pytest.mark.parametrize("module", MODULES)
def test_every_public_function_and_class_has_a_docstring(module: str) -> None:
    tree = parsed(module)[1]
    public = [
        node
        for node in tree.body
        if isinstance(node, Function | ast.ClassDef) and not node.name.startswith("_")
    ]
    assert public
    assert [node.name for node in public if not (ast.get_docstring(node) or "").strip()] == []
    assert ast.get_docstring(tree)


@pytest.mark.parametrize("module", MODULES)
def test_no_function_has_more_than_fifty_code_lines(module: str) -> None:
    lines = code_lines(module)
    sizes = {
        f.name: len(lines & set(range(f.lineno, (f.end_lineno or 0) + 1)))
        for f in functions(parsed(module)[1])
    }
    assert {name: size for name, size in sizes.items() if size > FUNCTION_CODE_LINES} == {}


def test_the_code_budget_is_measured() -> None:
    assert len(code_lines("pysbx_sandbox.py")) <= SANDBOX_CODE_LINES
    assert len(code_lines("pysbx.py")) <= SERVER_CODE_LINES


def test_code_lines_are_counted_without_blanks_comments_and_docstrings(tmp_path: Path) -> None:
    module = tmp_path / "module.py"
    module.write_text(
        '"""Docstring,\n\ntwo paragraphs."""\n\n# comment\nx = """text\n\n# no comment\n"""\n\n\n'
        'def f(\n    a: int,\n) -> int:\n    """One line."""\n    return (  # why\n        # why\n'
        "        a\n\n    )\n"
    )
    assert sorted(code_lines(str(module))) == [6, 8, 9, 12, 13, 14, 16, 18, 20]


def test_there_is_no_package_folder_and_no_helper_module() -> None:
    assert {path.name for path in ROOT.glob("*.py")} == set(MODULES)
    assert not list(ROOT.glob("*/__init__.py"))


# ---- the tools


def test_ruff_finds_nothing() -> None:
    tool("ruff", "check", "--quiet", ".")


def test_ruff_would_format_nothing_anew() -> None:
    tool("ruff", "format", "--check", "--quiet", ".")


def test_mypy_strict_finds_nothing() -> None:
    tool("mypy", "--strict", *MODULES)


# ---- the documents


def readme_options() -> list[str]:
    """Return the options named in the first cell of the rows of the README's table of options."""
    rows = re.findall(r"(?m)^\| (`--(?:[^|\\]|\\.)*)\|", (ROOT / "README.md").read_text("utf-8"))
    return [option for row in rows for option in re.findall(r"`(--[a-z-]+)", row)]


def test_the_readme_lists_exactly_the_options_of_the_parser() -> None:
    options = readme_options()
    assert len(set(options)) == len(options)
    of_parser = {o for action in pysbx.parser()._actions for o in action.option_strings}
    assert set(options) == {o for o in of_parser if o.startswith("--")} - {"--help"}


def test_every_option_has_a_help_text() -> None:
    assert [action.dest for action in pysbx.parser()._actions if not action.help] == []


def test_the_version_stands_in_one_place() -> None:
    version = pysbx_sandbox.__version__
    assert re.fullmatch(r"\d+\.\d+\.\d+(?:(?:a|b|rc)\d+)?", version)
    pattern = re.compile(rf"(?<![\w.]){re.escape(version)}(?![\w.]*\d)")
    made = (
        ROOT / ".ci/server.json"
    )  # from the one place, by .ci/server_json.py: test_publishing.py
    shown = [p for p in project_files() if ROOT / "tests" not in p.parents and p != made]
    places = [
        f"{path.relative_to(ROOT)}:{number}"
        for path in shown
        for number, line in enumerate(path.read_text("utf-8", "replace").splitlines(), 1)
        if pattern.search(line)
    ]
    assert [place.partition(":")[0] for place in places] == ["pysbx_sandbox.py"], places


def test_no_registry_is_named_by_its_host() -> None:
    """Indexes and registries are the operator's choice: uv and the engine know their defaults."""
    found = found_in_files(re.compile("|".join(map(re.escape, REGISTRIES))))
    assert set(found) <= {".ci/run: " + "docker" + ".io"}  # the name of Debian's package


def test_no_file_holds_a_path_of_the_machine_it_was_made_on() -> None:
    assert found_in_files(BUILD_MACHINE) == []


def found_in_files(pattern: re.Pattern[str]) -> list[str]:
    return [
        f"{path.relative_to(ROOT)}: {match[0]}"
        for path in project_files()
        if path != Path(__file__).resolve()
        for match in pattern.finditer(path.read_bytes().decode("utf-8", "replace"))
    ]


def test_nothing_that_a_run_makes_is_committed() -> None:
    made = re.compile(r"(^|/)(__pycache__|\.\w+_cache|dist|build|\.venv|[^/]+\.egg-info)/|\.pyc$")
    names = [path.relative_to(ROOT).as_posix() for path in git_files("--cached")]
    assert [name for name in names if made.search(name)] == []
