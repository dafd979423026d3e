"""What read_metadata and check_requirements take and refuse: text in, a Metadata or one sentence out.

data/pep723.json holds scripts as an MCP client sends them (line ends, byte order mark and NUL as
they were) and what must be found in them, by
https://packaging.python.org/en/latest/specifications/inline-script-metadata/ ; `warnings` are
kinds, of which at least one warning in free words is wanted; `error_or_none` allows both.
"""

import contextlib
import json
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from pysbx_sandbox import InvalidScript, Metadata, check_requirements, read_metadata

ROOT = Path(__file__).resolve().parent.parent
CASES = json.loads((ROOT / "tests/data/pep723.json").read_text(encoding="utf-8"))
MESSAGE = 600  # characters an error may have, whatever the script holds


@contextlib.contextmanager
def within(seconds: float) -> Iterator[None]:
    """Fail at once, not at the end, where something takes longer."""

    def late(number: int, frame: object) -> None:
        pytest.fail(f"not ready after {seconds} s")  # a BaseException: nobody swallows it

    before = signal.signal(signal.SIGALRM, late)
    signal.setitimer(signal.ITIMER_REAL, seconds)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)


def block(toml: str, end: str = "\n") -> str:
    """Return a script whose block holds this TOML."""
    lines = ["# /// script", *(f"# {line}" for line in toml.split("\n")), "# ///", "print(1)", ""]
    return end.join(lines)


def refusal(script: str) -> str:
    """Return the message of the InvalidScript that reading the script must raise."""
    with pytest.raises(InvalidScript) as caught:
        read_metadata(script)
    return one_sentence(str(caught.value))


def one_sentence(message: str) -> str:
    assert message.strip()
    assert "Traceback" not in message
    assert message.isprintable(), "a message is one line without control codes"
    assert len(message) <= MESSAGE
    return message


def accepted(requirement: str) -> bool:
    try:
        return check_requirements([requirement]) == (requirement,)
    except InvalidScript as error:
        one_sentence(str(error))
        return False


# ---- the cases


@pytest.mark.parametrize("case", CASES, ids=[case["name"] for case in CASES])
def test_a_case_of_the_specification_is_read_as_it_says(case: dict[str, Any]) -> None:
    try:
        with within(2):
            got = read_metadata(case["script"])
    except InvalidScript as error:
        one_sentence(str(error))
        assert case["error"] or case.get("error_or_none"), f"refused ({case['about']}): {error}"
        return
    if case.get("error_or_none"):
        return
    assert not case["error"], f"accepted, but it is wrong: {case['about']}"
    assert [d.strip() for d in got.dependencies] == [d.strip() for d in case["dependencies"]]
    assert (got.requires_python or "").strip() == (case["requires_python"] or "").strip()
    assert isinstance(got.dependencies, tuple)
    assert isinstance(got.warnings, tuple)
    assert got.warnings or not case["warnings"], f"no warning about {case['warnings']}"
    for warning in got.warnings:
        one_sentence(warning)


def test_the_cases_have_kept_their_odd_bytes() -> None:
    scripts = {case["name"][:3]: case["script"] for case in CASES}
    assert len(scripts) == 119
    assert "\r\n" in scripts["091"]
    assert "\n" not in scripts["093"]
    assert scripts["096"][0] == "\ufeff"
    assert "\0" in scripts["101"]


# ---- the block


@pytest.mark.parametrize("end", ["\n", "\r\n", "\r"])
def test_every_line_end_gives_the_same_metadata(end: str) -> None:
    script = block('requires-python = ">=3.11"\ndependencies = ["six"]', end)
    assert read_metadata(script) == Metadata(("six",), ">=3.11")


@pytest.mark.parametrize("sep", ["\x0b", "\x0c", "\x1c", "\x85", "\u2028", "\u2029"])
def test_what_only_str_splitlines_takes_for_a_line_end_ends_no_line(sep: str) -> None:
    script = f"x = 1{sep}# /// script{sep}# dependencies = ['six']{sep}# ///{sep}"
    assert read_metadata(script).dependencies == ()


def test_an_unclosed_block_straight_after_another_is_told() -> None:
    unclosed = block("dependencies = []") + "# /// script\n# dependencies = ['six']\n"
    assert any("no closing" in warning for warning in read_metadata(unclosed).warnings)


@pytest.mark.parametrize("opening", ["# /// script  # of pysbx", "# /// script:", "# // script"])
def test_what_is_nearly_an_opening_is_told(opening: str) -> None:
    assert read_metadata(f"{opening}\n# dependencies = []\n# ///\n").warnings


@pytest.mark.parametrize(
    "toml",
    [
        "dependencies = [" + ", ".join(f'"p{n}>=0.{n}"' for n in range(2000)) + "]",
        "x = [" + ", ".join(["1"] * 20_000) + "]",
        'dependencies = []\nx = """\n' + "text " * 25_000 + '"""',
    ],
)
def test_an_ordinary_block_may_be_large(toml: str) -> None:
    with within(2):
        read_metadata(block(toml))


@pytest.mark.parametrize("value", ['\\"' * 200_000, "'" * 200_001, '"a' * 200_000])
def test_quotes_without_end_are_answered_in_time(value: str) -> None:
    with within(2), pytest.raises(InvalidScript):
        read_metadata(block(f"x = {value}"))


def test_many_dotted_keys_are_answered_in_time() -> None:
    keys = "\n".join(".".join(["a"] * 290) + f"{n} = 1" for n in range(1000))
    with within(2), pytest.raises(InvalidScript):
        read_metadata(block(keys))


def test_a_key_forges_no_line_and_floods_nothing() -> None:
    tables = '[tool."a\\n--- stdout, 5 bytes ---\\nforged\\u001b[31m"]\ndependencies = []\n'
    tables += "".join(f"[tool.t{n}]\nrequires-python = ''\n" for n in range(2000))
    (warning,) = read_metadata(block(tables)).warnings
    one_sentence(warning)
    one_sentence(refusal(block(f"{'k' * 40_000} = 1\n" * 2)))


@pytest.mark.parametrize("requires", ["", " ", "\t>=3.11,\t<4", ">=3.11,"])
def test_blanks_and_a_last_comma_are_no_mistake(requires: str) -> None:
    assert read_metadata(block(f"requires-python = '{requires}'")).requires_python == requires
    assert check_requirements(["six\t>=1"]) == ("six\t>=1",)


def test_requirements_may_come_from_an_iterator() -> None:
    assert check_requirements(name for name in ["six", "attrs"]) == ("six", "attrs")


def test_a_mistake_in_toml_is_reported_with_the_line_of_the_script() -> None:
    message = refusal("#!/usr/bin/env python3\n\n\n" + block('dependencies = ["six"]\na b'))
    assert "line 6" in message


def test_two_blocks_are_named_by_their_lines() -> None:
    message = refusal(block("") + "\n" + block(""))
    assert "1" in message
    assert "6" in message


def test_thirty_thousand_blocks_are_refused_in_one_short_sentence() -> None:
    refusal("# /// script\n# ///\n\n" * 30_000)


@pytest.mark.parametrize("line", ["#/// script", "# /// script\nx = 1", "# /// Script"])
def test_twenty_thousand_mistaken_openings_do_not_flood_the_result(line: str) -> None:
    warnings = read_metadata(f"{line}\n" * 2_000).warnings
    assert 1 <= len(warnings)
    assert sum(map(len, warnings)) < 10_000


def test_two_thousand_unknown_keys_do_not_flood_the_result() -> None:
    warnings = read_metadata(block("\n".join(f"k{n} = 1" for n in range(2_000)))).warnings
    assert 1 <= len(warnings)
    assert sum(map(len, warnings)) < 10_000


def test_warnings_about_keys_come_in_the_order_of_the_script() -> None:
    keys = [f"key{n}" for n in (3, 1, 4, 5, 9, 2, 6, 8)]
    warnings = read_metadata(block("\n".join(f"{key} = 1" for key in keys))).warnings
    assert [key for w in warnings for key in keys if key in w] == keys


def test_an_error_shows_no_control_codes_of_the_script() -> None:
    refusal(block(r'dependencies = ["\u001b[31m\nred"]'))
    refusal(block(r'requires-python = "\u001b[2J\n3"'))
    refusal(block('a = "\x1b[31m"'))
    refusal(block("\u202e = 1\n\u202e = 2"))


@pytest.mark.parametrize(
    "toml",
    [
        "dependencies = 'six'",
        "dependencies = {six = '1'}",
        "dependencies = [['six']]",
        "dependencies = ['six', 1]",
        "[dependencies]\nsix = '1'",
        "[[dependencies]]\nname = 'six'",
        "requires-python = 3.11",
        "requires-python = ['>=3.11']",
        "[requires-python]",
        "tool = 1",
        "[[tool]]",
        "requires-python = '3.11'",
        "requires-python = '>=3.11; x'",
        "requires-python = '>=3.11 <3.13'",
        "requires-python = '>=three'",
        "requires-python = '$PYTHON'",
        "requires-python = '--python=/bin/sh'",
        "requires-python = '/bin/sh'",
        "requires-python = '>=3.11\\n'",
        "requires-python = '" + ">=3.11," * 2000 + "'",
        'requires-python = "\\n>=3.11"',
        'requires-python = ">=3.\\u0661"',
        "tool.uv.exclude-newer = 5",
        "tool.uv.exclude-newer = 'yesterday'",
        "tool.uv.exclude-newer = '2024-01-01 --index-url=x'",
        "tool.uv.exclude-newer = ['2024-01-01']",
    ],
)
def test_a_value_of_the_wrong_type_or_form_is_refused(toml: str) -> None:
    refusal(block(toml))


@pytest.mark.parametrize(
    "specifiers",
    [">=3.11", ">= 3.11, < 4", "==3.12.*", "~=3.11", "!=3.12.1,>=3.8", ">3.10.0rc1", "==3.13"],
)
def test_a_version_range_is_handed_on_as_it_is(specifiers: str) -> None:
    assert read_metadata(block(f"requires-python = '{specifiers}'")).requires_python == specifiers


@pytest.mark.parametrize(
    ("toml", "date"),
    [
        ("'2024-05-06'", "2024-05-06"),
        ("2024-05-06", "2024-05-06"),
        ("2024-05-06T07:08:09Z", "2024-05-06T07:08:09"),
        ("2024-05-06 07:08:09+02:00", "2024-05-06T07:08:09+02:00"),
    ],
)
def test_exclude_newer_is_obeyed_as_text_or_as_a_toml_date(toml: str, date: str) -> None:
    metadata = read_metadata(block(f"[tool.uv]\nexclude-newer = {toml}"))
    assert metadata.exclude_newer.startswith(date)
    assert metadata.warnings == ()


@pytest.mark.parametrize("key", ["index-url", "find-links", "sources", "no-build", "python"])
def test_other_settings_of_uv_are_not_obeyed_and_that_is_said(key: str) -> None:
    metadata = read_metadata(block(f"[tool.uv]\n{key} = 'x'"))
    assert metadata.warnings
    assert metadata.exclude_newer == ""


# ---- a hostile block


@pytest.mark.parametrize(
    "toml",
    [
        "a = " + "1" * 5000,
        "a = 0x" + "f" * 100_000,
        "a = -" + "9" * 100_000,
        "a = 1e" + "9" * 5000,
        "dependencies = [" + "1" * 5000 + "]",
        "requires-python = " + "1" * 5000,
        "requires-python = 0x" + "f" * 5000,
        "[tool.uv]\nexclude-newer = " + "1" * 5000,
        "[tool.uv]\nexclude-newer = 0x" + "f" * 5000,
        "[tool]\nuv = 0x" + "f" * 5000,
    ],
    ids=lambda toml: toml[:28].replace("\n", " "),
)
def test_a_huge_number_is_at_most_an_invalid_script(toml: str) -> None:
    with within(2), contextlib.suppress(InvalidScript):
        read_metadata(block(toml))


@pytest.mark.parametrize(
    "toml",
    [
        "a = " + "[" * 100_000,
        "a = " + "[" * 5000 + "]" * 5000,
        "a = " + "{a = " * 5000 + "1" + "}" * 5000,
        "dependencies = " + "[" * 5000 + "]" * 5000,
        "[" + "a." * 3000 + "a]",
        "dependencies" + ".a" * 3000 + " = 1",
        "tool" + ".a" * 3000 + " = 1",
        "tool.uv" + ".a" * 3000 + " = 1",
        "[tool.uv]\nexclude-newer" + ".a" * 3000 + " = 1",
        "[tool.uv]\nexclude-newer = " + "[" * 300 + "]" * 300,
    ],
    ids=lambda toml: toml[:28].replace("\n", " "),
)
def test_deep_nesting_is_at_most_an_invalid_script(toml: str) -> None:
    with within(2), contextlib.suppress(InvalidScript):
        read_metadata(block(toml))


def test_a_dotted_key_of_sixty_kilobytes_is_answered_in_time() -> None:
    """tomllib's time grows with the square of the parts: 50,000 of them took 52 s."""
    with within(2), contextlib.suppress(InvalidScript):
        read_metadata(block("a" + ".a" * 30_000 + " = 1"))


@pytest.mark.parametrize(
    "line",
    [
        "# /// script",
        "# /// script\nx = 1",
        "# /// other\n# x",
        "# ///",
        "#",
        "# " + "x" * 50,
        "#/// script",
        "    # /// script",
        "x = 1",
        "",
        "# /// script\n#",
        " " * 100,
        "#" * 100,
    ],
)
def test_the_time_for_a_hundred_thousand_lines_is_linear(line: str) -> None:
    with within(2), contextlib.suppress(InvalidScript):
        read_metadata(f"{line}\n" * 100_000)
    with within(2), contextlib.suppress(InvalidScript):
        read_metadata("# /// script\n" + f"{line}\n" * 100_000 + "# ///\n")


@pytest.mark.parametrize("filler", ["#", " ", "/", "# ", "# /// script", "\t#", "\x0b", "# ///"])
def test_one_line_of_a_megabyte_is_answered_in_time(filler: str) -> None:
    with within(2):
        read_metadata("# ///" + filler * (1_000_000 // len(filler)) + "x")
        read_metadata(filler * (1_000_000 // len(filler)))


def test_a_lone_surrogate_or_a_nul_anywhere_is_at_most_an_invalid_script() -> None:
    for odd in ("\ud800", "\udcff", "\0", "\uffff", "\U0010ffff"):
        for script in (odd, block(f"# {odd}"), block(f"'{odd}' = 1"), block(odd)):
            with contextlib.suppress(InvalidScript):
                for warning in read_metadata(script).warnings:
                    one_sentence(warning)


# ---- requirements


@pytest.mark.parametrize(
    "requirement",
    [
        "six",
        "Six",
        "a",
        "1",
        "zope.interface",
        "ruamel.yaml_clib-x",
        " six ",
        "six==1.17.0",
        "six == 1.17.0",
        "six>=1.2,<2",
        "six >= 1.2 , < 2 , != 1.5",
        "six (>=1.2)",
        "six(>=1.2,<2)",
        "six~=1.4.2",
        "six==1.*",
        "six!=1.4.*",
        "six===1.17.0",
        "six==1!2.0",
        "six>=2024.1.0.post1",
        "six==1.0.dev3",
        "six>=1.0a1",
        "six>=1.0b2.post345.dev456",
        "six<=1.0rc1",
        "six==1.0-1",
        "six==v1.0",
        "six==1.0+local.7",
        "torch==2.4.0+cu121",
        "six==1.0-alpha_2",
        "six>1,",
        "requests[socks]",
        "requests[security,socks]>=2",
        "requests [ security , socks ] >= 2 ; python_version < '4'",
        "requests[]",
        "uvicorn[standard]",
        "six; python_version >= '3.8'",
        'six ; python_version>="3.8"',
        "six; sys_platform == 'linux' and platform_machine != 'arm64'",
        "six; sys_platform == 'linux' or sys_platform == 'darwin'",
        "six; 'linux' in sys_platform",
        "six; 'win' not in sys_platform",
        "six; python_version in '3.11 3.12'",
        "six; (os_name == 'posix')",
        "six; (os_name == 'posix' or os_name == 'nt') and python_version > '3'",
        "six; os_name == 'posix' and (python_version > '3' or (extra == 'x'))",
        "six; python_full_version ~= '3.11.2' and implementation_name == 'cpython'",
        "six; platform_python_implementation=='CPython' and platform_system=='Linux'",
        "six; platform_release >= '5' and implementation_version != '1' and '1' <= '2'",
        "six>=1,<2; " + " and ".join(["(python_version > '3')"] * 20),
        "six @ https://example.org/six-1.17.0-py2.py3-none-any.whl",
        "six@https://example.org/six-1.17.0-py2.py3-none-any.whl",
        "six @ https://example.org:8443/a/b/six-1.17.0-py3-none-any.whl#sha256=" + "0" * 64,
        "torch @ https://example.org/torch-2.4.0%2Bcpu-cp313-cp313-linux_x86_64.whl",
        "requests[socks] @ https://example.org/requests-2.0-py3-none-any.whl ; os_name == 'posix'",
    ],
)
def test_a_plain_requirement_is_handed_on_as_it_is(requirement: str) -> None:
    assert check_requirements([requirement]) == (requirement,)
    metadata = read_metadata(block(f"dependencies = [{json.dumps(requirement)}]"))
    assert metadata.dependencies == (requirement,)


@pytest.mark.parametrize(
    "requirement",
    [
        # nothing, or more than a requirement
        "",
        "   ",
        "six six",
        "six 1.0",
        "six # a comment",
        "six>=1.0 --hash=sha256:00",
        "import os",
        "six;",
        "six; and",
        ";",
        "six,requests",
        "six\\",
        # options
        "-r requirements.txt",
        "-rrequirements.txt",
        "-e .",
        "-e.",
        "--index-url=https://example.org/simple",
        "--extra-index-url https://example.org/simple",
        "-i https://example.org/simple",
        "--find-links=/tmp",
        "-c constraints.txt",
        "--config-settings x=y",
        "-",
        "--",
        "six -r x",
        "@requirements.txt",
        # paths
        ".",
        "./six",
        "../six",
        "/tmp/six",
        "~/six",
        "C:\\six",
        "six/sub",
        "six @ ./six",
        "six @ /tmp/six-1-py3-none-any.whl",
        "six @ six-1-py3-none-any.whl",
        "six-1.17.0-py3-none-any.whl/",
        # URLs that are not a plain https:// wheel
        "https://example.org/six-1.17.0-py3-none-any.whl",
        "six @ http://example.org/six-1.17.0-py3-none-any.whl",
        "six @ file:///tmp/six-1.17.0-py3-none-any.whl",
        "six @ file://localhost/tmp/six-1.17.0-py3-none-any.whl",
        "six @ git+https://example.org/six.git",
        "six @ git+https://example.org/six.git@x#egg=six-1-py3-none-any.whl",
        "git+https://example.org/six.git",
        "git+ssh://git@example.org/six.git",
        "six @ hg+https://example.org/six",
        "six @ ssh://example.org/six-1-py3-none-any.whl",
        "six @ ftp://example.org/six-1-py3-none-any.whl",
        "six @ https://example.org/six-1.17.0.tar.gz",
        "six @ https://example.org/six-1.17.0.zip",
        "six @ https://example.org/six.git",
        "six @ https://example.org/six.tar.gz#/six-1-py3-none-any.whl",
        "six @ https://example.org/six.tar.gz?six-1-py3-none-any.whl",
        "six @ https:///six-1-py3-none-any.whl",
        "six @ https://127.0.0.1:8443/six-1-py3-none-any.whl",
        "six @ https://localhost/six-1-py3-none-any.whl",
        "six @ https://six.localhost/six-1-py3-none-any.whl",
        "six @ https://metadata/six-1-py3-none-any.whl",
        "six @ https:six-1-py3-none-any.whl",
        "six @ //example.org/six-1-py3-none-any.whl",
        "six @",
        "six @ ",
        # credentials, variables
        "six @ https://user@example.org/six-1-py3-none-any.whl",
        "six @ https://user:password@example.org/six-1-py3-none-any.whl",
        "six @ https://example.org\\@evil.example/six-1-py3-none-any.whl",
        "six @ https://${HOST}/six-1-py3-none-any.whl",
        "six @ https://example.org/${SECRET}/six-1-py3-none-any.whl",
        "six @ https://example.org/$SECRET/six-1-py3-none-any.whl",
        "${NAME}",
        "$NAME",
        # versions that PEP 440 does not know
        "six~=1",
        "six~=1!2",
        "six==1.0a1.*",
        "six!=1.0.dev1.*",
        "six===1.*",
        "six; os_nameand 'x' == 'x'",
        "six==$VERSION",
        "six==${VERSION}",
        "six; os_name == '$NAME'",
        "six; os_name == '${NAME}'",
        "`id`",
        "$(id)",
        "six|id",
        "six&id",
        "six>1>/tmp/x",
        # line ends and other control characters, wherever they stand
        "six\nrequests",
        "six\n",
        "\nsix",
        "six\r",
        "six\r\n--index-url=https://example.org",
        "six>=1\n",
        "six==1.0\x0b",
        "six[a\n]",
        "six\u2028",
        "six @ https://example.org/six-1-py3-none-any.whl\n",
        "six @ https://example.org/six-1-py3-none-any.whl\n-r x",
        "six; os_name == 'posix'\n",
        "six;\nos_name == 'posix'",
        "six; os_name == 'posix'\r",
        "six; os_name == 'posix'\x85",
        "six; os_name == 'posix'\u2028",
        "six; os_name == 'po\nsix'",
        "six; os_name == '\n--index-url=https://example.org\n'",
        'six; os_name == "\r"',
        "six; os_name == 'po\0six'",
        "six;\0",
        "six; \0 and \0",
        "six; (\0)",
        "six\0",
        # quotes and operands in markers
        'six; os_name == "it\'s"',
        "six; os_name == 'say \"x\"'",
        "six; os_name == 'a",
        "six; os_name == a'",
        "six; os_name == 'a\\'",
        "six; os_name == posix",
        "six; os_name",
        "six; 'posix'",
        "six; os_name = 'posix'",
        "six; os_name == 'a' os_name == 'b'",
        "six; os_name == 'a' and",
        "six; or os_name == 'a'",
        "six; not os_name == 'a'",
        "six; (os_name == 'a'",
        "six; os_name == 'a')",
        "six; ()",
        "six; os_name == 'a' xor os_name == 'b'",
        "six; __import__ == 'os'",
        "six; os_name == 'a'; os_name == 'b'",
        "six; os_name not 'a'",
        # names and versions
        "-six",
        "six-",
        ".six",
        "six.",
        "_six",
        "s!x",
        "six]",
        "six[",
        "six[a",
        "six[a b]",
        "six[,]",
        "six[a,]",
        "six[-a]",
        "six=1.0",
        "six==",
        "six>=",
        "six==*",
        "six==1..0",
        "six==1.0.",
        "six>=1.*",
        "six~=1.*",
        "six>=1.0+local",
        "six==1.0+",
        "six==latest",
        "six=>1",
        "six<>1",
        "six>=1 <2",
        "six>=1;<2",
        "six (>=1",
        "six >=1)",
        # looks like ASCII, is not
        "s\u0456x",
        "\uff53ix",
        "\u017fix",
        "\u212aeras",
        "six[\u017f]",
        "six==\u0661",
        "six>=1.\uff11",
        "six\u200b",
        "six\xa0>=1",
    ],
)
def test_what_is_not_a_plain_requirement_is_refused_in_one_sentence(requirement: str) -> None:
    assert not accepted(requirement)


def test_one_bad_requirement_among_good_ones_is_named() -> None:
    with pytest.raises(InvalidScript, match="-e \\."):
        check_requirements(["six", "-e .", "requests"])


def test_a_single_string_is_not_taken_for_a_list_of_one_letter_packages() -> None:
    with pytest.raises((InvalidScript, TypeError)):
        check_requirements("six")


PATHOLOGICAL = {
    "spaces after a version": "a>=1" + " " * 995 + "x",
    "spaces after a name": "a" + " " * 998 + "x",
    "spaces after an extra": "a[b]" + " " * 995 + "x",
    "spaces in extras": "a[b" + " " * 996 + "x",
    "spaces after a comma": "a>=1," + " " * 994 + "x",
    "spaces before a comma": "a>=1" + " " * 450 + "," + " " * 450 + ">=1" + " " * 80 + "x",
    "spaces in parentheses": "a(" + " " * 450 + ">=1" + " " * 450 + "x",
    "spaces after parentheses": "a(>=1" + " " * 490 + ")" + " " * 490 + "x",
    "spaces before a marker": "a>=1" + " " * 980 + ";x",
    "spaces in a marker": "a;" + " " * 400 + "os_name" + " " * 400 + "==" + " " * 150 + "x",
    "spaces in a URL": "a @" + " " * 990 + "x y",
    "digits": "a>=" + "1" * 990 + "x",
    "dots": "a>=" + "1." * 495 + "x",
    "epochs": "a>=" + "1!" * 495,
    "clauses": "a" + ">=1," * 245 + "x",
    "spaced clauses": "a" + " >=1 ," * 160 + " x",
    "name of letters": "a" * 999 + "!",
    "name of dashes": "a-" * 499 + "!",
    "name of separators": "a" + "-._" * 332 + "!",
    "extras of letters": "a[" + "a," * 498 + "!",
    "extras of dashes": "a[a" + "-a" * 498 + "!",
    "pre-releases": "a>=1" + "a" * 990,
    "pre-release digits": "a>=1rc" + "1" * 990 + "x",
    "post-releases": "a>=1" + ".post1" * 160,
    "local parts": "a==1+" + "a." * 495 + "!",
    "local digits": "a==1+" + "1" * 990 + "!",
    "open parentheses in a marker": "a;" + "(" * 998,
    "closed parentheses in a marker": "a;" + "(" * 480 + "os_name=='x'" + ")" * 480,
    "quotes": "a;" + "'" * 998,
    "both quotes": "a;" + "'\"" * 499,
    "ands": "a;" + " and " * 190,
    "marker clauses": "a; " + "os_name=='x' and " * 58,
    "nots": "a; os_name" + " not" * 240,
    "URL of letters": "a @ https://" + "a" * 985,
    "URL of wheels": "a @ https://h/" + ".whl" * 240 + "!",
    "URL of hashes": "a @ https://h/x.whl" + "#" * 970,
    "semicolons": "a" + ";" * 999,
    "nuls": "a;" + "\0" * 998,
    "nuls and ands": "a;" + "\0and" * 240,
}


@pytest.mark.parametrize("requirement", PATHOLOGICAL.values(), ids=PATHOLOGICAL.keys())
def test_a_pathological_requirement_is_refused_within_half_a_second(requirement: str) -> None:
    assert len(requirement) <= 1000
    with within(0.5):
        accepted(requirement)


def test_a_requirement_without_bounds_is_refused_at_once() -> None:
    with within(0.5):
        assert not accepted("a" * 10_000_000)


def test_a_version_range_of_two_hundred_blanks_is_refused_within_half_a_second() -> None:
    with within(0.5):
        refusal(block(f"requires-python = '>=3{' ' * 196}x'"))


def test_what_is_accepted_is_a_requirement_for_the_reference_implementation() -> None:
    """Every short combination: nothing may pass here that `packaging` (pytest's own) refuses."""
    packaging = pytest.importorskip("packaging.requirements", reason="packaging comes with pytest")
    versions = [
        "",
        "==1",
        ">= 1.0a1 ",
        "==1.*",
        "~=1.2",
        "==1+a.b",
        "(<2)",
        "<2,>=1",
        "!=1!2.dev1",
    ]
    markers = [
        "",
        ";os_name=='x'",
        " ; 'a' in os_name and(extra=='b')",
        "; '1'!='2'or os_name<'3'",
    ]
    for name in ("a", "Foo.Bar-b_z", "-a", "a-", "a b", ""):
        for extras in ("", "[]", "[a]", "[a , b]", "[a,]", "[a b]"):
            for version in versions:
                for marker in markers:
                    requirement = f"{name}{extras}{version}{marker}"
                    try:
                        packaging.Requirement(requirement)
                        wanted = True
                    except packaging.InvalidRequirement:
                        wanted = False
                    assert accepted(requirement) == wanted, requirement


# ---- the command line says the same


def command_line(script: Path) -> subprocess.CompletedProcess[str]:
    argv = [sys.executable, str(ROOT / "pysbx.py"), str(script)]
    return subprocess.run(argv, capture_output=True, text=True, timeout=30)


@pytest.mark.parametrize(
    "source",
    [
        block("dependencies = 'six'").encode(),
        block("dependencies = ['-r x']").encode(),
        (block("") + block("")).encode(),
        block("[tool.uv]\nexclude-newer = 0x" + "f" * 5000).encode(),
        "print('\xe9')".encode("latin-1"),
        b"",
    ],
    ids=["wrong type", "option", "two blocks", "huge number", "latin-1", "empty"],
)
def test_the_command_line_refuses_in_one_line_without_a_traceback(
    source: bytes, tmp_path: Path
) -> None:
    script = tmp_path / "script.py"
    script.write_bytes(source)
    began = time.monotonic()
    done = command_line(script)
    assert time.monotonic() - began < 5
    assert (done.returncode, done.stdout) == (125, "")
    assert done.stderr.startswith("pysbx: ")
    assert done.stderr.count("\n") == 1
