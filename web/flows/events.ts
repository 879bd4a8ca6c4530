/** Injects chat events into the WebSocket of a tab, as if the hub had sent them. */
import type { Page, WebSocketRoute } from 'playwright-core';

/** Content of an event. It may lack fields that the page does not show. */
interface EventContent {
  kind: string;
  phase?: string;
  text?: string;
  data: object;
}

export class EventSource {
  #socket: WebSocketRoute | undefined;
  #count = 0;

  /** Returns a source that injects events into the socket of `page`. Must be called before the page opens it. */
  static async before(page: Page): Promise<EventSource> {
    const source = new EventSource();
    await page.routeWebSocket(/\/ws\/client$/, (socket) => {
      socket.connectToServer();
      source.#socket = socket;
    });
    return source;
  }

  emit(roomId: string, agentId: string, event: EventContent): void {
    this.#count += 1;
    const id = `event-${this.#count}`;
    const full = { id, seq: this.#count, rev: 1, ts_ms: Date.now(), agent_id: agentId, session_id: roomId, ...event };
    this.#socket?.send(JSON.stringify({ type: 'server:event', event: full }));
  }
}
