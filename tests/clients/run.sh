#!/usr/bin/env bash
# Real MCP clients against pysbx; a line `client | what | seen | ok/FAIL` a check, exit code 1 if one failed.
#
#   PYSBX="python pysbx.py --network off" PYTHON=python PYSBX_CLIENTS=/tmp/clients tests/clients/run.sh [CLIENT...]
#
# PYSBX is the command of the server (one word or several, no quotes in it), PYTHON a Python with the MCP SDK.
# Everything is installed below PYSBX_CLIENTS (default: a new directory); it needs npm and its registry once,
# 2.5 GB of disk, and no login: the models are models.py on loopback. CLIENT: inspector sdk claude-code codex
# gemini-cli opencode; default all. What every model received is in $PYSBX_CLIENTS/log.
set -u
here=$(cd "$(dirname "$0")" && pwd)
root=${PYSBX_CLIENTS:-$(mktemp -d)}
python=${PYTHON:-python3}
read -ra server <<<"${PYSBX:-$python $here/../../pysbx.py}"
log=$root/log
rm -rf "$log" "$root/home" "$root/port"
mkdir -p "$log" "$root/home" "$root/place"
root=$(cd "$root" && pwd)
log=$root/log
export PYSBX_MARKER="pysbx-clients-$$" PYTHONDONTWRITEBYTECODE=1 PYTHONPATH=$here
server+=(--audit-log "$root/$PYSBX_MARKER.jsonl") # its path tells our servers from others
command=${server[0]}
args=("${server[@]:1}")
failed=0

say() { # CLIENT WHAT SEEN ok|FAIL
    printf '%s | %s | %s | %s\n' "$1" "$2" "$(tr '\n|' ' /' <<<"$3" | cut -c1-230)" "$4"
    [ "$4" != FAIL ] || failed=1
}
expect() { # CLIENT WHAT SEEN PATTERN...: every pattern must be found, none that begins with '!'
    local client=$1 what=$2 seen=$3 pattern verdict=ok
    shift 3
    for pattern; do
        case $pattern in
        !*) ! grep -Eqz -- "${pattern#!}" <<<"$seen" || verdict=FAIL ;;
        *) grep -Eqz -- "$pattern" <<<"$seen" || verdict=FAIL ;;
        esac
    done
    say "$client" "$what" "$seen" "$verdict"
}
judge() { # CLIENT CASE: what the model received
    local seen
    seen=$(cat "$log/$1.$2.seen" 2>/dev/null || echo "nothing; see $log/$1.$2.*")
    case $2 in
    text) expect "$1" text "$seen" 'exit code 0' 'hello 42' '!is_error' ;;
    image) expect "$1" image "$seen" 'exit code 0' 'plotted' 'figure-1.png' '\[image image/png [0-9]+ bytes whole' ;;
    error) expect "$1" "script error" "$seen" 'exit code 1' 'before' 'ValueError: boom' '!is_error' ;;
    timeout) expect "$1" timeout "$seen" 'timed out after 2' 'begun' ;;
    esac
}
alive() { # how many processes hold the marker as a word of its own: scripts of `cancel`
    grep -lEza "^$PYSBX_MARKER$" /proc/[0-9]*/cmdline 2>/dev/null | wc -l
}
servers() { # how many servers of ours there are
    grep -lza -- "^$root/$PYSBX_MARKER.jsonl$" /proc/[0-9]*/cmdline 2>/dev/null | wc -l
}
limited() { # SECONDS COMMAND...: in an empty home, without our keys and proxies to models
    local seconds=$1
    shift
    (cd "$root/place" && exec env HOME="$root/home" XDG_CONFIG_HOME="$root/home/.config" \
        XDG_DATA_HOME="$root/home/.local/share" XDG_STATE_HOME="$root/home/.local/state" \
        NO_PROXY=127.0.0.1 no_proxy=127.0.0.1 timeout -k 5 "$seconds" "$@" </dev/null)
}
install() { # NAME PACKAGE: from npm, below root; prints why not
    [ -e "$root/$1/node_modules/.installed" ] && return
    if timeout 900 npm install --no-fund --no-audit --prefix "$root/$1" "$2" >"$log/$1.npm" 2>&1; then
        touch "$root/$1/node_modules/.installed"
    else
        say "$1" install "npm: $(grep -m1 -i err "$log/$1.npm" || tail -1 "$log/$1.npm")" FAIL
        return 1
    fi
}
have() { # NAME PACKAGE PROGRAM: install it and say its version
    install "$1" "$2" || return 1
    export PATH="$root/$1/node_modules/.bin:$PATH"
    local version
    version=$(limited 60 "$3" --version 2>/dev/null | tail -1)
    expect "$1" version "${version:-does not start}" '^[^ ]*.*[0-9]+\.[0-9]+'
}
url() { echo "http://127.0.0.1:$port/$1/$2"; } # CLIENT CASE

# how each client is told to go on with a case; it leaves when the model says "done"
claude-code() {
    ANTHROPIC_BASE_URL=$(url claude-code "$1") ANTHROPIC_API_KEY=dummy ENABLE_TOOL_SEARCH=false DISABLE_AUTOUPDATER=1 \
        CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC=1 limited 150 claude -p go --mcp-config "$root/mcp.json" \
        --strict-mcp-config --allowedTools mcp__pysbx --output-format json
}
codex() {
    local provider
    provider="{name=\"mock\",base_url=\"$(url codex "$1")/v1\",wire_api=\"responses\",env_key=\"OPENAI_API_KEY\"}"
    OPENAI_API_KEY=dummy limited 150 codex-cli exec --skip-git-repo-check --dangerously-bypass-approvals-and-sandbox \
        -c model_provider=mock -c "model_providers.mock=$provider" -c mcp_servers.pysbx.required=true \
        -c mcp_servers.pysbx.startup_timeout_sec=30 -m gpt-5-codex go
}
gemini-cli() {
    GEMINI_API_KEY=dummy GOOGLE_GEMINI_BASE_URL=$(url gemini-cli "$1") limited 150 gemini -y -m gemini-2.5-pro -p go
}
opencode() {
    local model='"m":{"name":"m","tool_call":true,"attachment":true,"modalities":{"input":["text","image"],"output":["text"]},"limit":{"context":200000,"output":8000}}'
    printf '{"mcp":{"pysbx":{"type":"local","command":%s}},"permission":"allow","autoupdate":false,"share":"disabled","model":"mock/m","small_model":"mock/m","provider":{"mock":{"npm":"@ai-sdk/openai-compatible","options":{"baseURL":"%s/v1","apiKey":"x"},"models":{%s}}}}' \
        "$(words "${server[@]}")" "$(url opencode "$1")" "$model" >"$root/place/opencode.json"
    OPENCODE_DISABLE_AUTOUPDATE=1 OPENCODE_DISABLE_MODELS_FETCH=1 limited 150 opencode run go
}
words() { # as a JSON array
    "$python" -c 'import json, sys; print(json.dumps(sys.argv[1:]))' "$@"
}
conversations() { # CLIENT: all cases, then an interrupt while a script runs
    local case pid began until before
    for case in text image error timeout; do
        "$1" "$case" >"$log/$1.$case.out" 2>&1
        judge "$1" "$case"
    done
    set -m # else a background job, and so the client, ignores INT
    "$1" cancel >"$log/$1.cancel.out" 2>&1 &
    pid=$!
    set +m
    until=$((SECONDS + 60))
    while [ "$(alive)" = 0 ] && [ $SECONDS -lt $until ]; do sleep 0.2; done
    before="$(alive) script"
    began=$(date +%s%N)
    kill -INT -- "-$(pgrep -P "$pid" | head -1)" # as Ctrl-C: to the group, which `timeout` leads
    until=$((SECONDS + 20))
    while [ "$(alive)" != 0 ] && [ $SECONDS -lt $until ]; do sleep 0.05; done
    took=$((($(date +%s%N) - began) / 1000000))
    until=$((SECONDS + 15))
    while [ "$(servers)" != 0 ] && [ $SECONDS -lt $until ]; do sleep 0.1; done
    expect "$1" "interrupt while a script runs" "$before before, $(alive) after $took ms, $(servers) servers left" \
        '1 script before, 0 after' ' 0 servers left'
    pkill -TERM -P "$pid" 2>/dev/null # timeout, if the client did not leave by itself
    wait "$pid" 2>/dev/null
}

inspector() {
    have inspector @modelcontextprotocol/inspector@2.12.0 mcp-inspector || return
    local era seen rc load
    # shellcheck disable=SC2317
    inspect() { seen=$(limited 150 mcp-inspector --cli -q --format json "${server[@]}" "$@" 2>"$log/inspector.err"); rc=$?; seen="rc $rc: $seen"; }
    call() { inspect --protocol-era "$era" --method tools/call --tool-name execute_python --tool-args-json "$1"; }
    inspect --method tools/list --strict
    expect inspector "tools/list --strict" "rc $rc: $(grep -o '"name":"[a-z_]*"' <<<"$seen" | tr '\n' ' ')" '^rc 0' execute_python validate_script check_environment
    for era in legacy auto modern; do
        call '{"script": "print(6 * 7)"}'
        expect inspector "$era: text" "$seen" '^rc 0' 'exit code 0' '42' '!structuredContent'
        call '{"script": "raise ValueError(\"boom\")"}'
        expect inspector "$era: script error" "$seen" '^rc 0' 'exit code 1' 'ValueError: boom'
        call '{"script": "import time\ntime.sleep(60)", "timeout_seconds": 2}'
        expect inspector "$era: timeout" "$seen" '^rc 5' 'timed out after 2'
    done
    call "$("$python" -c 'import json, models; print(json.dumps(models.CASES["image"]))')"
    expect inspector "modern: image" "$(sed -E 's/"data":"[^"]{60,}"/"data":…/' <<<"$seen")" '^rc 0' 'figure-1.png' image/png
    call '{"script": 7}'
    expect inspector "modern: wrong argument" "$seen" '^rc 5' 'valid string'
    inspect --load --load-requests 50 --load-concurrency 4 --method tools/call --tool-name execute_python --tool-args-json '{"script": "print(1)"}'
    expect inspector "load, 50 calls, 4 at once" "$seen" '^rc 0' 50
}
sdk() {
    local mode case
    limited 600 "$python" "$here/sdk.py" "$log" "${server[@]}" >"$log/sdk.out" 2>&1
    for mode in legacy auto 2026-07-28; do
        for case in text image error timeout; do judge "sdk-$mode" $case; done
        expect "sdk-$mode" cancel "$(cat "$log/sdk-$mode.cancel.seen" 2>&1)" '^1 process before, 0 left' 'hello 42'
    done
}
claude-code-all() {
    have claude-code @anthropic-ai/claude-code@2.1.332 claude || return
    limited 60 claude mcp add pysbx -- "${server[@]}" >"$log/claude.add" 2>&1
    expect claude-code "claude mcp add" "$(head -1 "$log/claude.add")" '^Added'
    expect claude-code "claude mcp list" "$(limited 90 claude mcp list 2>&1 | grep pysbx | sed 's/.* - //')" '. Connected'
    printf '{"mcpServers":{"pysbx":{"command":"%s","args":%s}}}' "$command" "$(words "${args[@]}")" >"$root/mcp.json"
    conversations claude-code
}
codex-all() {
    have codex @openai/codex@0.171.0 codex || return
    ln -sf "$root/codex/node_modules/.bin/codex" "$root/codex/node_modules/.bin/codex-cli"
    limited 60 "$root/codex/node_modules/.bin/codex" mcp add pysbx -- "${server[@]}" >"$log/codex.add" 2>&1
    expect codex "codex mcp add, get" "$(limited 60 "$root/codex/node_modules/.bin/codex" mcp get pysbx 2>/dev/null)" 'transport: stdio' 'audit-log'
    conversations codex
}
gemini-cli-all() {
    have gemini-cli @google/gemini-cli@0.61.0 gemini || return
    mkdir -p "$root/home/.gemini"
    printf '{"security":{"folderTrust":{"enabled":false},"auth":{"selectedType":"gemini-api-key"}},"general":{"enableAutoUpdate":false},"privacy":{"usageStatisticsEnabled":false},"mcpServers":{"pysbx":{"command":"%s","args":%s}}}' \
        "$command" "$(words "${args[@]}")" >"$root/home/.gemini/settings.json"
    expect gemini-cli "gemini mcp list" "$(limited 90 gemini mcp list 2>&1 | grep pysbx | sed 's/.* - //')" 'Connected'
    conversations gemini-cli
}
opencode-all() {
    have opencode opencode-ai@1.18.33 opencode || return
    conversations opencode
}

command -v npm >/dev/null || { say npm install "there is no npm" FAIL; exit 1; }
install node node@22 || exit 1
PATH=$root/node/node_modules/.bin:$PATH
"$python" "$here/models.py" "$log" "$root/port" 2>"$log/mock.err" &
mock=$!
trap 'kill $mock 2>/dev/null' EXIT
for _ in $(seq 100); do [ -s "$root/port" ] && break; sleep 0.1; done
port=$(cat "$root/port")
say setup "server" "${server[*]}; node $(node --version)" ok
# some clients hand on few variables (no CA bundle, no index): what is installed is installed here
packages=$(echo 'import matplotlib; print("matplotlib is there")' | timeout 400 "${server[@]}" --with matplotlib - 2>&1)
expect setup "install packages" "$packages" 'is there'
[ $# -gt 0 ] || set -- sdk inspector claude-code codex gemini-cli opencode
for client; do
    case $client in inspector | sdk) "$client" ;; *) "$client-all" ;; esac
done
expect setup "servers left at the end" "$(servers)" '^0'
exit $failed
