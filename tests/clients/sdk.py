"""The SDK's client against a server: sdk.py DIR COMMAND...; one line `mode|case|what was seen` a check."""

import asyncio
import os
import sys
import time
from pathlib import Path
from typing import Any

from mcp.client import Client
from mcp.client.stdio import StdioServerParameters
from models import CASES, MARKER, picture


def alive() -> int:
    """Count the processes whose command line holds the marker as a word of its own."""
    found = 0
    for path in Path("/proc").glob("[0-9]*/cmdline"):
        try:
            found += MARKER.encode() in path.read_bytes().split(b"\0")
        except OSError:
            continue
    return found


def shown(result: Any) -> str:
    lines = ["[is_error]"] if result.is_error else []
    for block in result.content:
        image = block.type == "image"
        lines.append(picture(block.data, block.mime_type) if image else block.text)
    return "\n".join(lines + (["[STRUCTURED]"] if result.structured_content else []))


async def main(out: Path, command: list[str]) -> None:
    server = StdioServerParameters(command=command[0], args=command[1:], env=dict(os.environ))
    for mode in ("legacy", "auto", "2026-07-28"):
        async with Client(server, mode=mode) as client:
            for case, given in CASES.items():
                call = asyncio.ensure_future(client.call_tool("execute_python", given))
                if case != "cancel":
                    text = shown(await asyncio.wait_for(call, 180))
                else:
                    until = time.monotonic() + 30
                    while not alive() and time.monotonic() < until:
                        await asyncio.sleep(0.05)
                    before, began = alive(), time.monotonic()
                    call.cancel()
                    while alive() and time.monotonic() < began + 10:
                        await asyncio.sleep(0.01)
                    took = time.monotonic() - began
                    after = shown(await client.call_tool("execute_python", CASES["text"]))
                    text = f"{before} process before, {alive()} left after {took:.2f} s; the next call: {after}"
                (out / f"sdk-{mode}.{case}.seen").write_text(text)


if __name__ == "__main__":
    asyncio.run(main(Path(sys.argv[1]), sys.argv[2:]))
