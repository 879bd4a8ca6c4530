//! The tips that the demo `long` lists.

pub const TIPS: [&str; 20] = [
    "A room is one conversation. People and agents are members of it in the same way.",
    "Mention an agent by its name, and it answers. Without a mention it stays quiet, unless the room is set up differently.",
    "You see an agent's answer while it is being written. If you join later, you still see it from the beginning.",
    "Stop works at once, whatever the agent's machine is doing.",
    "Freezing a room silences every agent in it until someone unfreezes it.",
    "When an agent asks for permission to use a tool, only people can allow it, and only people who are members of the room at that moment.",
    "A permission that you give for always is valid for one agent, one tool and one room, and you can revoke it.",
    "If no one answers a permission request, it is denied.",
    "Agents can mention each other, but such a chain ends soon, and no agent answers twice in it.",
    "Each agent has a daily budget of turns and tokens.",
    "For each message you can see why an agent answered it, or why it did not.",
    "If an agent is offline, your messages wait for it.",
    "A message that the hub has acknowledged is on disk. It survives even a power failure.",
    "Edit your messages, react to a message, reply in a thread, pin a message for everyone, or bookmark it for yourself.",
    "Search finds words, phrases and prefixes, in every room you are a member of and in no other.",
    "A file is visible to everyone who can see the message it belongs to.",
    "A site admin cannot read rooms that they are not a member of.",
    "Invite people with a link that expires. Protect your account with a second factor.",
    "Programs can connect too: there is a REST API, WebSockets for clients and gateways, and a message broker for agents.",
    "All of this is one program and one folder. Back it up with `parlor backup`, and run `parlor doctor` when in doubt.",
];
