/** What agents and their kinds are called. */
import type { Agent } from '../generated/api';
import { text } from '../text';

export type AgentPresence = 'online' | 'busy' | 'offline';

export function presence(status: string): AgentPresence {
  return status === 'online' || status === 'busy' ? status : 'offline';
}

export function kindName({ type }: Pick<Agent, 'type'>): string {
  return text.agents.kinds[type] ?? text.agents.kinds['generic'] ?? type;
}

export function machine({ deviceInfo }: Pick<Agent, 'deviceInfo'>): string {
  return deviceInfo === undefined ? '' : deviceInfo.hostname;
}

/** What a shell takes as one word. */
export function shellWord(word: string): string {
  return /^[\w@%+=:,./-]+$/.test(word) ? word : `'${word.replaceAll("'", `'\\''`)}'`;
}

/** The command that hosts an agent, as `parlor gateway` takes it. */
export function gatewayCommand(name: string, kind: string, program: string): string {
  const command = `parlor gateway --agent ${shellWord(`${name}=${kind}`)}`;
  return kind === 'command' ? `${command} -- ${program}` : command;
}
