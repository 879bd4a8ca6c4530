/**
 * Changes that the hub reports with `run/sync`: the event names a room or an agent to read again, or neither if the
 * change belongs to no room, such as a changed setting or a renamed user.
 */
import type { UiEvent } from './frames';

/** Time in which changes are collected: one action of a user often changes several rooms. */
const COLLECT_MS = 500;

export interface Changes {
  rooms: Set<string>;
  agents: Set<string>;
  /** Whether something changed that the hub did not name. */
  isHubWide: boolean;
}

/** Collects changes, so that a burst of events causes one reload. */
export class ChangeCollector {
  readonly #reload: (changes: Changes) => void;
  #changes = none();
  #timer: ReturnType<typeof setTimeout> | undefined;

  constructor(reload: (changes: Changes) => void) {
    this.#reload = reload;
  }

  add({ session_id: roomId, agent_id: agentId }: Pick<UiEvent, 'session_id' | 'agent_id'>): void {
    if (roomId !== undefined) this.#changes.rooms.add(roomId);
    if (agentId !== undefined) this.#changes.agents.add(agentId);
    this.#changes.isHubWide ||= roomId === undefined && agentId === undefined;
    this.#timer ??= setTimeout(() => {
      const changes = this.#changes;
      this.clear();
      this.#reload(changes);
    }, COLLECT_MS);
  }

  clear(): void {
    clearTimeout(this.#timer);
    this.#timer = undefined;
    this.#changes = none();
  }
}

function none(): Changes {
  return { rooms: new Set(), agents: new Set(), isHubWide: false };
}
