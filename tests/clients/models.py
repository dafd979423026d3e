"""Model APIs for clients: models.py DIR PORT_FILE. Each conversation calls execute_python once, then ends.

The base URL of a client is http://127.0.0.1:PORT/CLIENT/CASE. What came back as the tool's result is
written to DIR/CLIENT.CASE.seen as one line; every request is kept in DIR/CLIENT.CASE.requests.
"""

import base64
import http.server
import json
import os
import re
import sys
import uuid
from pathlib import Path
from typing import Any

MARKER = os.environ.get("PYSBX_MARKER", "pysbx-clients-marker")
PLOT = "import matplotlib.pyplot as plt\nplt.plot([1, 4, 9])\nplt.show()\nprint('plotted')"
SLEEP = f"""import os, sys
os.execv(sys.executable, [sys.executable, "-c", "import time; time.sleep(200)", "{MARKER}"])"""
CASES: dict[str, dict[str, Any]] = {
    "text": {"script": "print('hello', 6 * 7)"},
    "image": {"script": PLOT, "dependencies": ["matplotlib"]},
    "error": {"script": "print('before')\nraise ValueError('boom')"},
    "timeout": {
        "script": "import time\nprint('begun', flush=True)\ntime.sleep(60)",
        "timeout_seconds": 2,
    },
    "cancel": {"script": SLEEP, "timeout_seconds": 200},
}


def picture(data: str, kind: str) -> str:
    """Describe an image by its bytes."""
    raw = base64.b64decode(data)
    good = "whole" if raw.startswith(b"\x89PNG") and b"IEND" in raw[-12:] else "BROKEN"
    return f"[image {kind} {len(raw)} bytes {good}]"


def described(result: Any) -> str:
    """Return what a tool result holds: its texts, and its images by type and size."""
    if isinstance(result, str):
        if found := re.fullmatch(r"data:([\w/]+);base64,(.*)", result, re.S):
            return picture(found[2], found[1])
        return result
    if isinstance(result, list):
        return "\n".join(described(part) for part in result)
    if isinstance(result, dict):
        source = result.get("source") or result.get("inlineData") or {}
        if isinstance(source, dict) and source.get("data"):
            return picture(source["data"], source.get("media_type") or source.get("mimeType"))
        keys = (
            "text",
            "content",
            "output",
            "error",
            "image_url",
            "url",
            "functionResponse",
            "response",
            "parts",
        )
        said = [described(result[key]) for key in keys if result.get(key)]
        return "\n".join(said + [f"[{key}]" for key in ("is_error",) if result.get(key)])
    return ""


def anthropic(asked: dict[str, Any]) -> tuple[list[str], str | None]:
    names = [tool["name"] for tool in asked.get("tools", [])]
    for message in asked.get("messages", []):
        if isinstance(message["content"], list):
            for block in message["content"]:
                if block.get("type") == "tool_result":
                    return names, described(block)
    return names, None


def responses(asked: dict[str, Any]) -> tuple[list[str], str | None]:
    names = []
    for tool in asked.get("tools", []):
        names += [f"{tool['name']}|{inner['name']}" for inner in tool.get("tools", [])] or [
            tool.get("name", "")
        ]
    for item in asked.get("input", []):
        if item.get("type") == "function_call_output":
            return names, described(item["output"])
    return names, None


def chat(asked: dict[str, Any]) -> tuple[list[str], str | None]:
    names = [tool["function"]["name"] for tool in asked.get("tools", [])]
    messages = asked.get("messages", [])
    for place, message in enumerate(messages):
        if message["role"] == "tool":  # images come in the messages after it
            return names, described([m for m in messages[place:] if m["role"] in ("tool", "user")])
    return names, None


def gemini(asked: dict[str, Any]) -> tuple[list[str], str | None]:
    names = [
        f["name"] for tool in asked.get("tools", []) for f in tool.get("functionDeclarations", [])
    ]
    for content in asked.get("contents", []):
        if any("functionResponse" in part for part in content["parts"]):
            return names, described(content["parts"])
    return names, None


def anthropic_answer(name: str, given: Any) -> list[tuple[str, Any]]:
    usage = {"input_tokens": 1, "output_tokens": 1}
    start = {"id": "msg_1", "type": "message", "role": "assistant", "model": "mock", "content": []}
    block, delta = {"type": "text", "text": ""}, {"type": "text_delta", "text": "done"}
    if name:
        block = {"type": "tool_use", "id": "toolu_1", "name": name, "input": {}}
        delta = {"type": "input_json_delta", "partial_json": json.dumps(given)}
    events: list[dict[str, Any]] = [
        {"type": "message_start", "message": {**start, "stop_reason": None, "usage": usage}},
        {"type": "content_block_start", "index": 0, "content_block": block},
        {"type": "content_block_delta", "index": 0, "delta": delta},
        {"type": "content_block_stop", "index": 0},
        {
            "type": "message_delta",
            "delta": {"stop_reason": "tool_use" if name else "end_turn"},
            "usage": usage,
        },
        {"type": "message_stop"},
    ]
    return [(event["type"], event) for event in events]


def responses_answer(name: str, given: Any) -> list[tuple[str, Any]]:
    item: dict[str, Any] = {"type": "message", "id": "m1", "role": "assistant"}
    item["content"] = [{"type": "output_text", "text": "done", "annotations": []}]
    if name:
        space, _, inner = name.rpartition("|")
        item = {"type": "function_call", "id": "f1", "call_id": "call_1", "name": inner}
        item |= {"arguments": json.dumps(given)} | ({"namespace": space} if space else {})
    usage = {"input_tokens": 1, "output_tokens": 1, "total_tokens": 2}
    events: list[dict[str, Any]] = [
        {"type": "response.created", "response": {"id": "r1"}},
        {"type": "response.output_item.done", "output_index": 0, "item": item},
        {"type": "response.completed", "response": {"id": "r1", "usage": usage}},
    ]
    return [(event["type"], event) for event in events]


def chat_answer(name: str, given: Any) -> list[tuple[str, Any]]:
    call = {"index": 0, "id": "call_1", "type": "function"}
    delta: dict[str, Any] = {"role": "assistant", "content": "done"}
    if name:
        call |= {"function": {"name": name, "arguments": json.dumps(given)}}
        delta = {"role": "assistant", "tool_calls": [call]}
    whole = {"id": "c1", "object": "chat.completion.chunk", "created": 1, "model": "mock"}
    ends = {"index": 0, "delta": {}, "finish_reason": "tool_calls" if name else "stop"}
    usage = {"prompt_tokens": 1, "completion_tokens": 1, "total_tokens": 2}
    return [
        ("", {**whole, "choices": [{"index": 0, "delta": delta, "finish_reason": None}]}),
        ("", {**whole, "choices": [ends], "usage": usage}),
        ("", "[DONE]"),
    ]


def gemini_answer(name: str, given: Any) -> list[tuple[str, Any]]:
    part = {"functionCall": {"name": name, "args": given}} if name else {"text": "done"}
    content = {"role": "model", "parts": [part]}
    usage = {"promptTokenCount": 1, "candidatesTokenCount": 1, "totalTokenCount": 2}
    return [
        (
            "",
            {
                "candidates": [{"content": content, "finishReason": "STOP", "index": 0}],
                "usageMetadata": usage,
            },
        )
    ]


APIS = {
    "/messages": (anthropic, anthropic_answer),
    "/responses": (responses, responses_answer),
    "/chat/completions": (chat, chat_answer),
    "GenerateContent": (gemini, gemini_answer),
}


class Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def log_message(self, *_: Any) -> None:
        pass

    def reply(self, body: bytes, kind: str, status: int = 200) -> None:
        self.send_response(status)
        self.send_header("Content-Type", kind)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def do_GET(self) -> None:
        self.reply(b'{"data": [], "models": []}', "application/json")

    def do_HEAD(self) -> None:
        self.reply(b"", "text/plain")

    def do_POST(self) -> None:
        body = self.rfile.read(int(self.headers["Content-Length"] or 0))
        path = self.path.partition("?")[0]
        _, client, case, *_ = [*path.split("/"), "", ""]
        asked = json.loads(body or b"{}") if client and case in CASES else {}
        api = next((api for end, api in APIS.items() if path.endswith(end)), None)
        with open(OUT / f"{client}.{case or 'none'}.requests", "a") as log:
            log.write(json.dumps({"path": self.path, "asked": asked}) + "\n")
        if not api:  # a count of tokens and the like
            answer = {"input_tokens": 1, "totalTokens": 1}
            return self.reply(
                json.dumps(answer).encode(), "application/json", 200 if case else 404
            )
        names, seen = api[0](asked)
        tool = next((name for name in names if name.endswith("execute_python")), "")
        if seen is not None:
            (OUT / f"{client}.{case}.seen").write_text(seen)
            tool = ""
        given = CASES[case] | {"script": CASES[case]["script"] + f"\n# {uuid.uuid4()}"}
        events = api[1](tool, given)
        if "streamGenerate" not in path and path.endswith("GenerateContent"):
            return self.reply(json.dumps(events[0][1]).encode(), "application/json")
        text = ""
        for event, data in events:
            data = data if isinstance(data, str) else json.dumps(data)
            text += (f"event: {event}\n" if event else "") + f"data: {data}\n\n"
        return self.reply(text.encode(), "text/event-stream")


if __name__ == "__main__":
    OUT = Path(sys.argv[1])
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    Path(sys.argv[2]).write_text(str(server.server_port))
    server.serve_forever()
