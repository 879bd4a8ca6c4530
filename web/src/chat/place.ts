/**
 * Keys of chats. A run takes place in a room or, without a room, in a session of its agent, which only the owner of the
 * agent sees. The state of both is a chat; its key is the id of the room, or `agent:session`. Ids contain no colon.
 */

export interface SessionPlace {
  agentId: string;
  sessionId: string;
}

export function sessionKey({ agentId, sessionId }: SessionPlace): string {
  return `${agentId}:${sessionId}`;
}

/** Key of the chat of a run; `undefined` if the frame names neither a room nor a session. */
export function placeOf(frame: { roomId?: string; agentId: string; sessionId?: string }): string | undefined {
  const { roomId, agentId, sessionId } = frame;
  if (roomId !== undefined) return roomId;
  return sessionId === undefined ? undefined : sessionKey({ agentId, sessionId });
}

/** The session that a key names; `undefined` for the key of a room. */
export function sessionOf(key: string): SessionPlace | undefined {
  const [agentId, sessionId] = key.split(':');
  return agentId === undefined || sessionId === undefined ? undefined : { agentId, sessionId };
}
