/** Labels and totals for agents, their types and their runs. */
import type { Agent, TurnDelivery } from '../generated/api';
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

/** Quotes a word for a POSIX shell. */
export function shellWord(word: string): string {
  return /^[\w@%+=:,./-]+$/.test(word) ? word : `'${word.replaceAll("'", `'\\''`)}'`;
}

/** `parlor gateway` command that hosts an agent. */
export function gatewayCommand(name: string, kind: string, program: string): string {
  const command = `parlor gateway --agent ${shellWord(`${name}=${kind}`)}`;
  return kind === 'command' ? `${command} -- ${program}` : command;
}

export function tokensOf(runs: Pick<TurnDelivery, 'inputTokens' | 'outputTokens'>[]): number {
  return runs.reduce((sum, run) => sum + run.inputTokens + run.outputTokens, 0);
}

/** Total cost of the runs, in millionths of a dollar. */
export function costOf(runs: Pick<TurnDelivery, 'costMicros'>[]): number {
  return runs.reduce((sum, run) => sum + (run.costMicros ?? 0), 0);
}

/** Total execution time of the finished runs in seconds, without their time in the queue. */
export function secondsOf(runs: Pick<TurnDelivery, 'startedAt' | 'endedAt'>[]): number {
  const milliseconds = runs.reduce(
    (sum, { startedAt, endedAt }) =>
      startedAt === undefined || endedAt === undefined ? sum : sum + Date.parse(endedAt) - Date.parse(startedAt),
    0,
  );
  return Math.round(milliseconds / 1000);
}
