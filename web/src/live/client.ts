/**
 * Chat client of a signed-in tab: keeps the connection, joins rooms, loads missing history, sends and resends
 * messages.
 *
 * Decides when to send frames and requests to the hub. The reducer alone decides how the state changes.
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

const PAGE_SIZE = 50;
/** Maximum number of history pages loaded to find the message of a link. */
const MAX_PAGES = 40;
/** Maximum number of agents per room whose status and runs are requested. */
const MAX_AGENTS = 20;
const RETRY_DELAY_MS = 3000;
const TYPING_INTERVAL_MS = 2500;

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
  #typingSentAt = 0;
  #retryTimer: ReturnType<typeof setTimeout> | undefined;
  #readTimer: ReturnType<typeof setTimeout> | undefined;

  constructor(me: User, onSignedOut: () => void) {
    this.me = me;
    this.#outbox = new Outbox(me.id);
    this.#connection = new LiveConnection({
      onLive: () => void this.#onLive(),
      onLost: () => dispatch({ type: 'CONNECTION', connection: 'waiting' }),
      onSignedOut,
      onFrame: (frame) => this.#onFrame(frame),
    });
    this.#joins = new JoinQueue((roomId) => this.#join(roomId));
  }

  start(): void {
    const { id, displayName, username } = this.me;
    dispatch({ type: 'SIGNED_IN', id, names: [displayName, username] });
    this.#outbox.all().forEach((unsent) => this.#show(unsent));
    document.addEventListener('visibilitychange', this.#onVisibilityChange);
    this.#connection.start();
  }

  stop(): void {
    document.removeEventListener('visibilitychange', this.#onVisibilityChange);
    clearTimeout(this.#readTimer);
    clearTimeout(this.#retryTimer);
    this.#joins.clear();
    this.#connection.stop();
    dispatch({ type: 'SIGNED_OUT' });
  }

  /** Opens a room, and loads its history if it is not loaded. */
  open(roomId: string | undefined): void {
    dispatch({ type: 'ROOM_OPENED', roomId });
    if (roomId === undefined) return;
    if (this.#joins.has(roomId)) void this.#loadHistory(roomId);
    else this.#joins.joinNow(roomId);
    this.markRead(roomId);
    void this.#loadDetails(roomId);
  }

  sendMessage(roomId: string, draft: Draft): void {
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

  retryMessage(roomId: string, clientMessageId: string): void {
    const unsent = this.#outbox.all().find((other) => other.clientMessageId === clientMessageId);
    if (unsent === undefined) return;
    dispatch({ type: 'RETRY_SEND', roomId, clientMessageId });
    this.#send(unsent);
  }

  discardMessage(message: ChatMessage): void {
    this.#outbox.remove(message.clientMessageId ?? '');
    dispatch({ type: 'REMOVE_MESSAGES', roomId: message.roomId, messageIds: [message.id] });
  }

  sendFrame(frame: ClientFrame): boolean {
    return this.#connection.send(frame);
  }

  typing(roomId: string): void {
    if (Date.now() - this.#typingSentAt < TYPING_INTERVAL_MS) return;
    this.#typingSentAt = Date.now();
    this.sendFrame({ type: 'client:typing', roomId });
  }

  markRead(roomId: string): void {
    clearTimeout(this.#readTimer);
    this.#readTimer = setTimeout(() => {
      if (!document.hidden) void apiRequest('POST', `/api/messages/rooms/${roomId}/read`).catch(ignoreError);
    }, 400);
  }

  async loadOlder(roomId: string): Promise<void> {
    const chat = useChat.getState().chats[roomId];
    if (chat?.history !== 'ready' || chat.olderCursor === undefined) return;
    await this.#loadPage(roomId, chat.olderCursor, PAGE_SIZE);
  }

  /** Loads older messages until the given one is loaded. Returns whether it was found. */
  async find(roomId: string, messageId: string): Promise<boolean> {
    for (let page = 0; page < MAX_PAGES; page += 1) {
      const chat = useChat.getState().chats[roomId];
      if (chat?.messages.some((message) => message.id === messageId)) return true;
      if (chat?.history !== 'ready' || chat.olderCursor === undefined) return false;
      await this.#loadPage(roomId, chat.olderCursor, 200);
    }
    return false;
  }

  /** Loads the members of a room for a page other than the room's own. */
  async loadRoom(roomId: string): Promise<void> {
    await this.#loadDetails(roomId);
  }

  /** Loads the tasks of a room, and its members as assignees. */
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
    dispatch({ type: 'ROOMS_LOADED', rooms: rooms.map((room) => roomEntry(room, recent)) });
    this.#joins.enqueue(byRecency(rooms, recent));
  }

  async #onLive(): Promise<void> {
    dispatch({ type: 'CONNECTION', connection: 'live' });
    this.#joins.restart();
    // Without `since`: logged events are resumed with each room, and of the others only new ones matter.
    this.sendFrame({ type: 'client:subscribe_events' });
    const { openRoom } = useChat.getState();
    if (openRoom !== undefined) this.#joins.joinNow(openRoom);
    for (const unsent of this.#outbox.all()) {
      const shown = useChat.getState().chats[unsent.roomId]?.messages;
      const hasFailed = shown?.some(
        (message) => message.clientMessageId === unsent.clientMessageId && message.sending === 'failed',
      );
      if (hasFailed !== true) this.#send(unsent);
    }
    await this.refreshRooms().catch(ignoreError);
    if (openRoom !== undefined) void this.#loadDetails(openRoom);
  }

  #join(roomId: string): boolean {
    const since = useChat.getState().chats[roomId]?.position ?? 'now';
    return this.sendFrame({ type: 'client:join_room', roomId, since });
  }

  #onFrame(frame: ServerFrame): void {
    dispatchSoon(translate(frame, Date.now()));
    switch (frame.type) {
      case 'server:room_joined':
      case 'server:resync':
        flush();
        if (frame.roomId === useChat.getState().openRoom) void this.#loadHistory(frame.roomId);
        break;
      case 'server:message_ack':
        this.#outbox.remove(frame.clientMessageId);
        break;
      case 'server:room_update':
        // The user was just added to this room.
        if (!this.#joins.has(frame.room.id)) void this.refreshRooms().catch(ignoreError);
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
    this.sendFrame({ type: 'client:send_message', roomId, content, clientMessageId, replyToId, attachmentIds });
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
    dispatch({ type: 'PUSH_MESSAGE', message, isNew: false });
  }

  async #loadHistory(roomId: string): Promise<void> {
    const history = useChat.getState().chats[roomId]?.history ?? 'unread';
    if (history !== 'unread' && history !== 'stale') return;
    await this.#loadPage(roomId, undefined, PAGE_SIZE);
    const plans = await apiRequest<StoredPlan[]>('GET', `/api/plan?session_id=${encodeURIComponent(roomId)}`).catch(() => []);
    dispatch({
      type: 'PLANS_LOADED',
      roomId,
      plans: plans.map(({ run_id: runId, plan }) => ({ runId, plan: planOf(plan) })),
    });
    await this.#loadRuns(roomId);
  }

  /** Loads duration and token usage of the runs behind the loaded replies. */
  async #loadRuns(roomId: string): Promise<void> {
    const replies = useChat.getState().chats[roomId]?.messages.filter((message) => message.runId !== undefined) ?? [];
    const agents = [...new Set(replies.map((message) => message.from))].slice(0, MAX_AGENTS);
    const requests = agents.map((id) => apiResult<TurnDelivery[]>('GET', `/api/agents/${encodeURIComponent(id)}/runs?limit=200`));
    // The request fails for an agent that was removed: its runs are skipped.
    const runs = (await Promise.allSettled(requests)).flatMap((result) => (result.status === 'fulfilled' ? result.value : []));
    dispatch({ type: 'RUNS_LOADED', roomId, runs: runs.map(runOf) });
  }

  async #loadPage(roomId: string, cursor: string | undefined, limit: number): Promise<void> {
    // After a resync, messages may be missing or deleted: the loaded page replaces them.
    const replace = useChat.getState().chats[roomId]?.history === 'stale';
    dispatch({ type: 'HISTORY_LOADING', roomId });
    const query = new URLSearchParams({ limit: String(limit), ...(cursor !== undefined && { cursor }) });
    try {
      const page = await apiResult<History>('GET', `/api/messages/rooms/${roomId}?${query}`);
      // Applies frames received since the request before the page is merged.
      flush();
      const olderCursor = page.hasMore ? page.nextCursor : undefined;
      const messages = page.items.map(fromMessage);
      dispatch({ type: 'HISTORY_LOADED', roomId, messages, olderCursor, replace });
    } catch {
      dispatch({ type: 'HISTORY_FAILED', roomId });
      this.#retryTimer = setTimeout(() => {
        if (roomId === useChat.getState().openRoom) void this.#loadHistory(roomId);
      }, RETRY_DELAY_MS);
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
      const agents = members.filter((member) => member.memberType === 'agent').slice(0, MAX_AGENTS);
      await Promise.all(agents.map((member) => this.#loadAgent(member.memberId)));
    } catch {
      // The next room update brings the details, or the room was deleted.
    }
  }

  /** Loads the current status of an agent. Later changes arrive as frames. */
  async #loadAgent(agentId: string): Promise<void> {
    const { name, status, model } = await apiResult<Agent>('GET', `/api/agents/${agentId}`);
    dispatch({ type: 'AGENT_STATUS', agentId, agent: { name, status, model: model ?? undefined, queueDepth: 0 } });
  }

  readonly #onVisibilityChange = (): void => {
    flush();
    const { openRoom } = useChat.getState();
    if (!document.hidden && openRoom !== undefined) this.markRead(openRoom);
  };
}

function roomEntry(room: RoomOfMember, recent: RecentRooms): RoomEntry {
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
  const lastMessageAt = (room: RoomOfMember) => recent[room.id]?.createdAt ?? room.createdAt;
  return rooms.toSorted((a, b) => lastMessageAt(b).localeCompare(lastMessageAt(a))).map((room) => room.id);
}

/** Replacement for `crypto.randomUUID`, which does not exist without TLS. */
function randomId(): string {
  return Array.from(crypto.getRandomValues(new Uint8Array(16)), (byte) => byte.toString(16).padStart(2, '0')).join('');
}

/** Error handler for requests that are repeated on the next connection. */
function ignoreError(): void {}
