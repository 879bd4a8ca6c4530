#!/bin/sh
# An agent that only reads and appends to chat.md. It approves everything that the coder asks for.
chat="${1:-.}/.workplace/chat.md"

tail -n +1 -F "$chat" 2>/dev/null | while read -r line; do
    case "$line" in
        "[coder-to-reviewer]: please review "*)
            echo "[reviewer-to-coder]: approved ${line#*]: please review }" >> "$chat"
            ;;
    esac
done
