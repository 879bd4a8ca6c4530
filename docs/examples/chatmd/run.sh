#!/bin/sh
# Connects a new project with a room, and starts two agents that talk through its chat.md.
#
#   PARLOR_KEY=… sh run.sh ROOM
#
# Open the room in the browser and write "build the parser". PARLOR_SERVER is the URL of the hub; without it, the
# hub on this machine is used. The key needs the scopes read, write and agents, and `parlor` must be in the PATH.
set -eu
room=${1:?give the id of the room, as in the address of the web app: /app/rooms/…}
here=$(dirname "$0")
project=$(mktemp -d)
mkdir "$project/.workplace"
touch "$project/.workplace/chat.md"

# The agents end with the bridge.
trap 'trap - EXIT TERM; kill 0' EXIT
trap 'exit 1' HUP INT TERM
sh "$here/coder.sh" "$project" &
sh "$here/reviewer.sh" "$project" &
echo "The agents talk through $project/.workplace/chat.md"
parlor bridge "$project" --room "$room" &
wait $!
