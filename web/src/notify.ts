/** Notifies the user in the tab title and with browser notifications. */
import { useEffect } from 'react';
import { useChat } from './chat/store';
import { isReply, isStreaming, type ChatMessage, type Reply } from './chat/message';
import type { AskUser } from './chat/parts';
import { sessionOf } from './chat/place';
import { emptyChat, type ChatState, type Permission, type RoomChat } from './chat/state';
import { agentPath, navigate, roomPath } from './router';
import { text } from './text';

export function useTitle(roomId: string | undefined): void {
  const name = useChat((state) => (roomId === undefined ? undefined : state.rooms[roomId]?.name));
  const count = useChat(badgeCount);
  useEffect(() => {
    const place = name === undefined ? text.product : `${name} · ${text.product}`;
    document.title = count > 0 ? `(${count}) ${place}` : place;
  }, [name, count]);
}

/** Number of unread mentions, open approvals and open questions, for the tab title. */
export function badgeCount(state: ChatState): number {
  const mentions = Object.values(state.rooms).reduce((sum, room) => sum + room.mentions, 0);
  return Object.values(state.chats).reduce((sum, chat) => sum + pendingCount(chat), mentions);
}

/** Counts per room state, cached because the title is computed on every state change. */
const countCache = new WeakMap<RoomChat, number>();

function pendingCount(chat: RoomChat): number {
  const known = countCache.get(chat);
  if (known !== undefined) return known;
  const permissions = chat.permissions.filter((permission) => permission.decision === undefined).length;
  const pending = permissions + chat.messages.slice(-RECENT_MESSAGES).filter(hasOpenQuestion).length;
  countCache.set(chat, pending);
  return pending;
}

function hasOpenQuestion(message: ChatMessage): message is Reply & { askUser: AskUser } {
  return isReply(message) && message.askUser !== undefined && message.askUser.end === undefined;
}

export function useNotifications(): void {
  useEffect(() => {
    const unsubscribe = useChat.subscribe((state, before) => {
      if (!document.hidden || !('Notification' in globalThis) || Notification.permission !== 'granted') return;
      notices(state, before, Date.now()).forEach(show);
    });
    return () => unsubscribe();
  }, []);
}

function show({ title, body, tag, roomId }: Notice): void {
  try {
    const shown = new Notification(title, { body, tag });
    shown.onclick = () => {
      window.focus();
      const session = sessionOf(roomId);
      navigate(session === undefined ? roomPath(roomId) : agentPath(session.agentId));
      shown.close();
    };
  } catch {
    // On phones only service workers may create notifications. The tab title still shows the count.
  }
}

interface Notice {
  roomId: string;
  title: string;
  body: string;
  tag: string;
}

/** Minimum duration of a reply to notify of its end. */
const LONG_REPLY_MS = 10_000;
/** Number of last messages per room that are checked for changes. */
const RECENT_MESSAGES = 30;

/** Notifications for the changes between two states. */
export function notices(state: ChatState, before: ChatState, now: number): Notice[] {
  const mentioned = Object.values(state.rooms)
    .filter((room) => room.notificationPref !== 'none' && room.mentions > (before.rooms[room.id]?.mentions ?? 0))
    .map((room) => ({
      roomId: room.id,
      title: `${room.recent?.senderName ?? ''} · ${room.name}`,
      body: room.recent?.content.slice(0, 200) ?? '',
      tag: room.id,
    }));
  const changed = Object.entries(state.chats).filter(([roomId, chat]) => chat !== before.chats[roomId]);
  const inRooms = changed.flatMap(([roomId, chat]) => {
    const room = state.rooms[roomId];
    const earlier = before.chats[roomId] ?? emptyChat;
    const place = room?.name ?? sessionOf(roomId)?.sessionId ?? '';
    const finished = room?.notificationPref === 'none' ? [] : justFinished(chat, earlier, now);
    return [
      ...newPermissions(chat, earlier).map((one) => ({
        roomId,
        title: text.permission.request(one.agentName, one.toolName),
        body: place,
        tag: one.requestId,
      })),
      ...newQuestions(chat, earlier).map((one) => ({
        roomId,
        title: text.notify.question(one.senderName),
        body: one.askUser.questions[0]?.question ?? place,
        tag: one.askUser.questionId,
      })),
      ...finished.map((one) => ({
        roomId,
        title: text.notify.finished(one.senderName, place),
        body: one.text.slice(0, 200),
        tag: one.id,
      })),
    ];
  });
  return [...mentioned, ...inRooms];
}

function newPermissions(chat: RoomChat, before: RoomChat): Permission[] {
  if (chat.permissions === before.permissions) return [];
  const known = new Set(before.permissions.map((one) => one.requestId));
  return chat.permissions.filter((one) => one.decision === undefined && !known.has(one.requestId));
}

function newQuestions(chat: RoomChat, before: RoomChat): (Reply & { askUser: AskUser })[] {
  const known = new Set(before.messages.slice(-RECENT_MESSAGES).filter(isReply).map((one) => one.askUser?.questionId));
  const open = chat.messages.slice(-RECENT_MESSAGES).filter(hasOpenQuestion);
  return open.filter((one) => !known.has(one.askUser.questionId));
}

function justFinished(chat: RoomChat, before: RoomChat, now: number): ChatMessage[] {
  const streaming = before.messages.slice(-RECENT_MESSAGES).filter(isStreaming);
  const startedAt = new Map(streaming.map((one) => [one.id, one.timestampMs]));
  return chat.messages
    .slice(-RECENT_MESSAGES)
    .filter((one) => !isStreaming(one) && now - (startedAt.get(one.id) ?? now) >= LONG_REPLY_MS);
}
