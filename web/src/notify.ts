/** Tells who is not looking: the title of the tab, and the browser's own notifications. */
import { useEffect } from 'react';
import { useChat } from './chat/store';
import type { ChatState } from './chat/state';
import { text } from './text';

export function useTitle(roomId: string | undefined): void {
  const name = useChat((state) => (roomId === undefined ? undefined : state.rooms[roomId]?.name));
  const calls = useChat(callsForMe);
  useEffect(() => {
    const place = name === undefined ? text.product : `${name} · ${text.product}`;
    document.title = calls > 0 ? `(${calls}) ${place}` : place;
  }, [name, calls]);
}

/** Mentions, and what agents wait for an answer to. */
function callsForMe(state: ChatState): number {
  const mentions = Object.values(state.rooms).reduce((sum, room) => sum + room.mentions, 0);
  const asked = Object.values(state.chats).flatMap((chat) => chat.permissions);
  return mentions + asked.filter((permission) => permission.decision === undefined).length;
}

export function useNotifications(): void {
  useEffect(
    () =>
      useChat.subscribe((state, before) => {
        if (!document.hidden || !('Notification' in globalThis) || Notification.permission !== 'granted') return;
        for (const { title, body, tag } of news(state, before)) new Notification(title, { body, tag });
      }),
    [],
  );
}

interface News {
  title: string;
  body: string;
  tag: string;
}

/** What happened between two states that is worth calling somebody for. */
export function news(state: ChatState, before: ChatState): News[] {
  const mentioned = Object.values(state.rooms)
    .filter((room) => room.notificationPref !== 'none' && room.mentions > (before.rooms[room.id]?.mentions ?? 0))
    .map((room) => ({
      title: `${room.recent?.senderName ?? ''} · ${room.name}`,
      body: room.recent?.content.slice(0, 200) ?? '',
      tag: room.id,
    }));
  const asked = Object.entries(state.chats).flatMap(([roomId, chat]) =>
    chat.permissions === before.chats[roomId]?.permissions
      ? []
      : chat.permissions.filter(
          (one) =>
            one.decision === undefined &&
            !before.chats[roomId]?.permissions.some((other) => other.requestId === one.requestId),
        ),
  );
  return [
    ...mentioned,
    ...asked.map((one) => ({
      title: text.permission.asks(one.agentName, one.toolName),
      body: state.rooms[one.roomId]?.name ?? '',
      tag: one.requestId,
    })),
  ];
}
