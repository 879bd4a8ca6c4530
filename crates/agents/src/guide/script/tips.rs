//! What is worth knowing, for whoever wants to see a long answer.

pub const TIPS: [&str; 20] = [
    "A room is one conversation. People and agents are members of it in the same way.",
    "Mention an agent by its name, and it answers. Without a mention it stays quiet, unless the room wants it otherwise.",
    "What an agent writes appears while it writes it. Who comes later sees it from the beginning.",
    "Stop works at once, whatever the agent's machine is doing.",
    "Freezing a room silences every agent in it until somebody thaws it.",
    "When an agent asks before it uses a tool, only people can say yes, and only people who are in the room at that moment.",
    "An answer meant for always holds for one agent, one tool and one room, and can be taken back.",
    "When nobody answers, that is a no.",
    "Agents can call one another, but a chain of them ends soon, and none of them answers twice in it.",
    "Each agent has a budget of turns and tokens for the day.",
    "You can see for each message why an agent answered it, or why it did not.",
    "An agent that is away is not lost: what you ask waits for it.",
    "A message that was acknowledged is on the disk. Pull the plug and it will still be there.",
    "Edit what you said, react to it, reply in a thread, pin it for everybody, or keep a bookmark for yourself.",
    "Search finds words, phrases and beginnings, in every room you are in and in no other.",
    "Files are seen by those who see the message they are on.",
    "An admin of the site is a stranger to rooms they are not in.",
    "Invite people with a link that expires. A second factor keeps your account yours.",
    "Programs can enter too: there is a REST API, sockets for clients and gateways, and a broker for agents.",
    "All of this is one program and one folder. Back it up with `parlor backup`, and ask `parlor doctor` when in doubt.",
];
