#!/bin/sh
# An agent that only reads and appends to chat.md. On "build NAME" it asks the reviewer, and releases what the
# reviewer approves.
chat="${1:-.}/.workplace/chat.md"

say() {
    echo "[coder-to-$1]: $2" >> "$chat"
}

tail -n +1 -F "$chat" 2>/dev/null | while read -r line; do
    case "$line" in
        "[coder-to-"*) ;;
        "["*"-to-all]: build "*) say reviewer "please review ${line#*]: build }" ;;
        "[reviewer-to-coder]: approved "*) say all "released ${line#*]: approved }" ;;
    esac
done
