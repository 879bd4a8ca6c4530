/** Tells who is not looking: the title of the tab, and the browser's own notifications. */
import { useEffect } from 'react';
import { useChat } from './chat/store';
import { emptyChat, type ChatMessage, type ChatState, type Permission, type RoomChat } from './chat/state';
import { navigate, roomPath } from './router';
import { text } from './text';

export function useTitle(roomId: string | undefined): void {
  const name = useChat((state) => (roomId === undefined ? undefined : state.rooms[roomId]?.name));
  const calls = useChat(badgeCount);
  useEffect(() => {
    const place = name === undefined ? text.product : `${name} · ${text.product}`;
    document.title = calls > 0 ? `(${calls}) ${place}` : place;
  }, [name, calls]);
}

/** Mentions, and what agents wait for an answer to. */
export function badgeCount(state: ChatState): number {
  const mentions = Object.values(state.rooms).reduce((sum, room) => sum + room.mentions, 0);
  return Object.values(state.chats).reduce((sum, chat) => sum + openIn(chat), mentions);
}

/** Counted once for each state of a room: a title is looked at with every piece of text. */
const counted = new WeakMap<RoomChat, number>();

function openIn(chat: RoomChat): number {
  const known = counted.get(chat);
  if (known !== undefined) return known;
  const asked = chat.permissions.filter((permission) => permission.decision === undefined).length;
  const open = asked + chat.messages.slice(-LATEST).filter(isAsking).length;
  counted.set(chat, open);
  return open;
}

function isAsking({ askUser }: ChatMessage): boolean {
  return askUser !== undefined && askUser.end === undefined;
}

export function useNotifications(): void {
  useEffect(() => {
    const unsubscribe = useChat.subscribe((state, before) => {
      if (!document.hidden || !('Notification' in globalThis) || Notification.permission !== 'granted') return;
      news(state, before, Date.now()).forEach(show);
    });
    return () => unsubscribe();
  }, []);
}

function show({ title, body, tag, roomId }: Notice): void {
  try {
    const shown = new Notification(title, { body, tag });
    shown.onclick = () => {
      window.focus();
      navigate(roomPath(roomId));
      shown.close();
    };
  } catch {
    // Phones let only workers notify; the title of the tab has the count all the same.
  }
}

interface Notice {
  roomId: string;
  title: string;
  body: string;
  tag: string;
}

/** A reply that took so long was waited for by somebody who went elsewhere. */
const LONG_MS = 10_000;
/** What is further back than this is not news. */
const LATEST = 30;

/** What happened between two states that is worth calling somebody for. */
export function news(state: ChatState, before: ChatState, now: number): Notice[] {
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
    const place = room?.name ?? '';
    const finished = room?.notificationPref === 'none' ? [] : justFinished(chat, earlier, now);
    return [
      ...justAsked(chat, earlier).map((one) => ({
        roomId,
        title: text.permission.asks(one.agentName, one.toolName),
        body: place,
        tag: one.requestId,
      })),
      ...questions(chat, earlier).map((one) => ({
        roomId,
        title: text.notify.question(one.senderName),
        body: one.askUser?.questions[0]?.question ?? place,
        tag: one.askUser?.questionId ?? one.id,
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

function justAsked(chat: RoomChat, before: RoomChat): Permission[] {
  if (chat.permissions === before.permissions) return [];
  const known = new Set(before.permissions.map((one) => one.requestId));
  return chat.permissions.filter((one) => one.decision === undefined && !known.has(one.requestId));
}

function questions(chat: RoomChat, before: RoomChat): ChatMessage[] {
  const known = new Set(before.messages.slice(-LATEST).map((one) => one.askUser?.questionId));
  return chat.messages
    .slice(-LATEST)
    .filter((one) => isAsking(one) && !known.has(one.askUser?.questionId));
}

function justFinished(chat: RoomChat, before: RoomChat, now: number): ChatMessage[] {
  const speaking = new Map(
    before.messages.slice(-LATEST).flatMap((one) => (one.isGenerating === true ? [[one.id, one.timestampMs] as const] : [])),
  );
  return chat.messages.slice(-LATEST).filter((one) => {
    const begun = speaking.get(one.id);
    return begun !== undefined && one.isGenerating !== true && now - begun >= LONG_MS;
  });
}
