/** Tells a tab of chat events, as the hub does, through the socket it has. */
import type { Page, WebSocketRoute } from 'playwright-core';
import type { UiEvent } from '../src/live/events';

export class EventSource {
  #socket: WebSocketRoute | undefined;
  #count = 0;

  /** Before the page is opened. */
  static async before(page: Page): Promise<EventSource> {
    const source = new EventSource();
    await page.routeWebSocket(/\/ws\/client$/, (socket) => {
      socket.connectToServer();
      source.#socket = socket;
    });
    return source;
  }

  tell(roomId: string, agentId: string, event: Pick<UiEvent, 'kind' | 'phase' | 'text' | 'data'>): void {
    this.#count += 1;
    const id = `event-${this.#count}`;
    const whole = { id, seq: this.#count, rev: 1, ts_ms: Date.now(), agent_id: agentId, session_id: roomId, ...event };
    this.#socket?.send(JSON.stringify({ type: 'server:event', event: whole }));
  }
}
