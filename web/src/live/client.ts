/**
 * What a signed-in person's tab does: keeps the connection, joins rooms, fills holes, sends and sends again.
 *
 * Owns: when something is asked of the hub. Never: what the state becomes, which is the reducer's.
 */
import { apiRequest, apiResult } from '../api/http';
import { dispatch, dispatchSoon, flush, useChat } from '../chat/store';
import type { ChatMessage, RoomEntry } from '../chat/state';
import type {
  Agent,
  Attachment,
  History,
  PinnedMessage,
  RecentRooms,
  RoomOfMember,
  RoomWithMembers,
  Task,
  TurnDelivery,
  User,
} from '../generated/api';
import { LiveConnection } from './connection';
import type { ClientFrame, ServerFrame } from './frames';
import { JoinQueue } from './joins';
import { planOf, type Fields } from './events';
import { fromMessage, runOf } from './messages';
import { Outbox, type Unsent } from './outbox';
import { translate } from './translate';

const PAGE = 50;
/** How far back a link to a message is followed. */
const MOST_PAGES = 40;
/** Of so many in one room it is asked how they are. */
const MOST_AGENTS = 20;
const AGAIN_AFTER_MS = 3000;
const TYPING_EVERY_MS = 2500;

interface StoredPlan {
  run_id: string;
  plan: Fields;
}

export interface Draft {
  content: string;
  replyToId?: string;
  attachments: Attachment[];
}

export class ChatClient {
  readonly me: User;
  readonly #outbox: Outbox;
  readonly #connection: LiveConnection;
  readonly #joins: JoinQueue;
  #typedAt = 0;
  #again: ReturnType<typeof setTimeout> | undefined;
  #reading: ReturnType<typeof setTimeout> | undefined;

  constructor(me: User, onSignedOut: () => void) {
    this.me = me;
    this.#outbox = new Outbox(me.id);
    this.#connection = new LiveConnection({
      onLive: () => void this.#live(),
      onLost: () => dispatch({ type: 'CONNECTION', connection: 'waiting' }),
      onSignedOut,
      onFrame: (frame) => this.#hear(frame),
    });
    this.#joins = new JoinQueue((roomId) => this.#join(roomId));
  }

  start(): void {
    const { id, displayName, username } = this.me;
    dispatch({ type: 'SIGNED_IN', id, names: [displayName, username] });
    this.#outbox.all().forEach((unsent) => this.#show(unsent));
    document.addEventListener('visibilitychange', this.#seen);
    this.#connection.start();
  }

  stop(): void {
    document.removeEventListener('visibilitychange', this.#seen);
    clearTimeout(this.#reading);
    clearTimeout(this.#again);
    this.#joins.clear();
    this.#connection.stop();
    dispatch({ type: 'SIGNED_OUT' });
  }

  /** Shows a room, and reads what was said in it if that is not known. */
  open(roomId: string | undefined): void {
    dispatch({ type: 'ROOM_OPENED', roomId });
    if (roomId === undefined) return;
    if (this.#joins.has(roomId)) void this.#fill(roomId);
    else this.#joins.first(roomId);
    this.markRead(roomId);
    void this.#loadDetails(roomId);
  }

  say(roomId: string, draft: Draft): void {
    const unsent: Unsent = {
      clientMessageId: crypto.randomUUID?.() ?? randomId(),
      roomId,
      content: draft.content,
      replyToId: draft.replyToId,
      attachments: draft.attachments,
      writtenAt: new Date().toISOString(),
    };
    this.#outbox.add(unsent);
    this.#show(unsent);
    this.#send(unsent);
  }

  sayAgain(roomId: string, clientMessageId: string): void {
    const unsent = this.#outbox.all().find((one) => one.clientMessageId === clientMessageId);
    if (unsent === undefined) return;
    dispatch({ type: 'SEND_AGAIN', roomId, clientMessageId });
    this.#send(unsent);
  }

  forget(message: ChatMessage): void {
    this.#outbox.remove(message.clientMessageId ?? '');
    dispatch({ type: 'REMOVE_MESSAGES', roomId: message.roomId, messageIds: [message.id] });
  }

  tell(frame: ClientFrame): boolean {
    return this.#connection.send(frame);
  }

  typing(roomId: string): void {
    if (Date.now() - this.#typedAt < TYPING_EVERY_MS) return;
    this.#typedAt = Date.now();
    this.tell({ type: 'client:typing', roomId });
  }

  markRead(roomId: string): void {
    clearTimeout(this.#reading);
    this.#reading = setTimeout(() => {
      if (!document.hidden) void apiRequest('POST', `/api/messages/rooms/${roomId}/read`).catch(ignored);
    }, 400);
  }

  async loadOlder(roomId: string): Promise<void> {
    const chat = useChat.getState().chats[roomId];
    if (chat?.history !== 'ready' || chat.olderCursor === undefined) return;
    await this.#load(roomId, chat.olderCursor, PAGE);
  }

  /** Reads back until a message is there; says whether it was found. */
  async find(roomId: string, messageId: string): Promise<boolean> {
    for (let page = 0; page < MOST_PAGES; page += 1) {
      const chat = useChat.getState().chats[roomId];
      if (chat?.messages.some((message) => message.id === messageId)) return true;
      if (chat?.history !== 'ready' || chat.olderCursor === undefined) return false;
      await this.#load(roomId, chat.olderCursor, 200);
    }
    return false;
  }

  /** A room that is looked at from elsewhere: who is in it. */
  async loadRoom(roomId: string): Promise<void> {
    await this.#loadDetails(roomId);
  }

  /** The tasks of a room, and its members, to whom they are given. */
  async loadTasks(roomId: string): Promise<void> {
    void this.#loadDetails(roomId);
    const tasks = await apiResult<Task[]>('GET', `/api/tasks/rooms/${roomId}`);
    dispatch({ type: 'TASKS_LOADED', roomId, tasks });
  }

  async refreshRooms(): Promise<void> {
    const [rooms, recent] = await Promise.all([
      apiResult<RoomOfMember[]>('GET', '/api/rooms'),
      apiResult<RecentRooms>('GET', '/api/messages/recent'),
    ]);
    dispatch({ type: 'ROOMS_LOADED', rooms: rooms.map((room) => entry(room, recent)) });
    this.#joins.want(byRecency(rooms, recent));
  }

  async #live(): Promise<void> {
    dispatch({ type: 'CONNECTION', connection: 'live' });
    this.#joins.restart();
    // What is in the log comes with the rooms, from where they were left; of the rest only the present counts.
    this.tell({ type: 'client:subscribe_events' });
    const { openRoom } = useChat.getState();
    if (openRoom !== undefined) this.#joins.first(openRoom);
    for (const unsent of this.#outbox.all()) {
      const shown = useChat.getState().chats[unsent.roomId]?.messages;
      const isRefused = shown?.some(
        (message) => message.clientMessageId === unsent.clientMessageId && message.sending === 'failed',
      );
      if (isRefused !== true) this.#send(unsent);
    }
    await this.refreshRooms().catch(ignored);
    if (openRoom !== undefined) void this.#loadDetails(openRoom);
  }

  #join(roomId: string): boolean {
    const since = useChat.getState().chats[roomId]?.position ?? 'now';
    return this.tell({ type: 'client:join_room', roomId, since });
  }

  #hear(frame: ServerFrame): void {
    dispatchSoon(translate(frame, Date.now()));
    switch (frame.type) {
      case 'server:room_joined':
      case 'server:resync':
        flush();
        if (frame.roomId === useChat.getState().openRoom) void this.#fill(frame.roomId);
        break;
      case 'server:message_ack':
        this.#outbox.remove(frame.clientMessageId);
        break;
      case 'server:room_update':
        // Brought into a room just now.
        if (!this.#joins.has(frame.room.id)) void this.refreshRooms().catch(ignored);
        break;
      case 'server:new_message':
      case 'server:message_complete': {
        const { clientMessageId, roomId } = frame.message;
        if (clientMessageId !== undefined) this.#outbox.remove(clientMessageId);
        if (roomId === useChat.getState().openRoom) this.markRead(roomId);
        break;
      }
      default:
    }
  }

  #send({ clientMessageId, roomId, content, replyToId, attachments }: Unsent): void {
    const attachmentIds = attachments.map((file) => file.id);
    this.tell({ type: 'client:send_message', roomId, content, clientMessageId, replyToId, attachmentIds });
  }

  #show(unsent: Unsent): void {
    const { id, displayName } = this.me;
    const message: ChatMessage = {
      role: 'user',
      id: unsent.clientMessageId,
      clientMessageId: unsent.clientMessageId,
      roomId: unsent.roomId,
      from: id,
      senderName: displayName,
      senderType: 'user',
      text: unsent.content,
      timestamp: unsent.writtenAt,
      timestampMs: Date.parse(unsent.writtenAt),
      sending: 'waiting',
      mentions: [],
      attachments: unsent.attachments,
      reactions: [],
      replyToId: unsent.replyToId,
    };
    dispatch({ type: 'PUSH_MESSAGE', message, isNews: false });
  }

  async #fill(roomId: string): Promise<void> {
    const history = useChat.getState().chats[roomId]?.history ?? 'unread';
    if (history !== 'unread' && history !== 'stale') return;
    await this.#load(roomId, undefined, PAGE);
    const plans = await apiRequest<StoredPlan[]>('GET', `/api/plan?session_id=${encodeURIComponent(roomId)}`).catch(() => []);
    dispatch({
      type: 'PLANS_LOADED',
      roomId,
      plans: plans.map(({ run_id: runId, plan }) => ({ runId, plan: planOf(plan) })),
    });
    await this.#loadRuns(roomId);
  }

  /** What those took who spoke here. */
  async #loadRuns(roomId: string): Promise<void> {
    const replies = useChat.getState().chats[roomId]?.messages.filter((message) => message.runId !== undefined) ?? [];
    const agents = [...new Set(replies.map((message) => message.from))].slice(0, MOST_AGENTS);
    const lists = agents.map((id) => apiResult<TurnDelivery[]>('GET', `/api/agents/${encodeURIComponent(id)}/runs?limit=200`));
    // Of an agent that is gone nothing is known any more.
    const known = (await Promise.allSettled(lists)).flatMap((list) => (list.status === 'fulfilled' ? list.value : []));
    dispatch({ type: 'RUNS_LOADED', roomId, runs: known.map(runOf) });
  }

  async #load(roomId: string, cursor: string | undefined, limit: number): Promise<void> {
    // After a resync what is shown may have holes, or show what is gone.
    const anew = useChat.getState().chats[roomId]?.history === 'stale';
    dispatch({ type: 'HISTORY_LOADING', roomId });
    const query = new URLSearchParams({ limit: String(limit), ...(cursor !== undefined && { cursor }) });
    try {
      const page = await apiResult<History>('GET', `/api/messages/rooms/${roomId}?${query}`);
      // What came meanwhile comes before what it is merged with.
      flush();
      const olderCursor = page.hasMore ? page.nextCursor : undefined;
      const messages = page.items.map(fromMessage);
      dispatch({ type: 'HISTORY_LOADED', roomId, messages, olderCursor, anew });
    } catch {
      dispatch({ type: 'HISTORY_FAILED', roomId });
      this.#again = setTimeout(() => {
        if (roomId === useChat.getState().openRoom) void this.#fill(roomId);
      }, AGAIN_AFTER_MS);
    }
  }

  async #loadDetails(roomId: string): Promise<void> {
    try {
      const [{ members, ...room }, pins] = await Promise.all([
        apiResult<RoomWithMembers>('GET', `/api/rooms/${roomId}`),
        apiResult<PinnedMessage[]>('GET', `/api/rooms/${roomId}/pins`),
      ]);
      dispatch({
        type: 'ROOM_UPDATED',
        room: { ...room, systemPrompt: room.systemPrompt ?? undefined, routerId: room.routerId ?? undefined },
        members: members.map((member) => ({
          ...member,
          roleDescription: member.roleDescription ?? undefined,
          lastReadAt: member.lastReadAt ?? undefined,
        })),
      });
      dispatch({ type: 'PINS_LOADED', roomId, messageIds: pins.map((pin) => pin.messageId) });
      const agents = members.filter((member) => member.memberType === 'agent').slice(0, MOST_AGENTS);
      await Promise.all(agents.map((member) => this.#loadAgent(member.memberId)));
    } catch {
      // Told by the next change of the room, or gone.
    }
  }

  /** How it is now; changes are told. */
  async #loadAgent(agentId: string): Promise<void> {
    const { name, status, model } = await apiResult<Agent>('GET', `/api/agents/${agentId}`);
    dispatch({ type: 'AGENT_STATUS', agentId, agent: { name, status, model: model ?? undefined, queueDepth: 0 } });
  }

  readonly #seen = (): void => {
    flush();
    const { openRoom } = useChat.getState();
    if (!document.hidden && openRoom !== undefined) this.markRead(openRoom);
  };
}

function entry(room: RoomOfMember, recent: RecentRooms): RoomEntry {
  const last = recent[room.id];
  return {
    ...room,
    systemPrompt: room.systemPrompt ?? undefined,
    routerId: room.routerId ?? undefined,
    pinnedAt: room.pinnedAt ?? undefined,
    archivedAt: room.archivedAt ?? undefined,
    members: [],
    unread: last?.unread ?? 0,
    mentions: last?.mentions ?? 0,
    ...(last !== undefined && { recent: last }),
  };
}

function byRecency(rooms: RoomOfMember[], recent: RecentRooms): string[] {
  const said = (room: RoomOfMember) => recent[room.id]?.createdAt ?? room.createdAt;
  return rooms.toSorted((a, b) => said(b).localeCompare(said(a))).map((room) => room.id);
}

/** Pages that are not served securely have no `randomUUID`. */
function randomId(): string {
  return Array.from(crypto.getRandomValues(new Uint8Array(16)), (byte) => byte.toString(16).padStart(2, '0')).join('');
}

/** What could not be read now is read when the connection is back. */
function ignored(): void {}
