/** Slash commands of the message field. They run locally and are not sent as messages. */
import { apiRequest } from '../api/http';
import { useChat } from '../chat/store';
import { isStreaming } from '../chat/message';
import type { ChatClient } from '../live/client';
import { navigate, settingsPath } from '../router';
import { text } from '../text';
import { showPanel } from '../view';

export interface Command {
  name: string;
  hint: string;
  run: (client: ChatClient, roomId: string) => void;
}

export const COMMANDS: readonly Command[] = [
  { name: 'members', hint: text.commands.members, run: (_, roomId) => showPanel({ kind: 'details', roomId }) },
  { name: 'stop', hint: text.commands.stop, run: stop },
  {
    name: 'freeze',
    hint: text.commands.freeze,
    run: (_, roomId) => void apiRequest('POST', `/api/rooms/${roomId}/freeze`),
  },
  {
    name: 'thaw',
    hint: text.commands.thaw,
    run: (_, roomId) => void apiRequest('DELETE', `/api/rooms/${roomId}/freeze`),
  },
  {
    name: 'clear',
    hint: text.commands.clear,
    run: (_, roomId) => void apiRequest('PUT', `/api/rooms/${roomId}/clear`),
  },
  { name: 'settings', hint: text.commands.settings, run: () => navigate(settingsPath('account')) },
];

export function commandIn(written: string): Command | undefined {
  const name = /^\/([a-z]+)$/.exec(written.trim())?.[1];
  return COMMANDS.find((command) => command.name === name);
}

function stop(client: ChatClient, roomId: string): void {
  const messages = useChat.getState().chats[roomId]?.messages ?? [];
  const answering = new Set(messages.filter(isStreaming).map((message) => message.from));
  for (const agentId of answering) client.sendFrame({ type: 'client:stop_generation', roomId, agentId });
}
