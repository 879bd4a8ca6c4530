/** A gateway driven by a test. It speaks the AgentIM gateway protocol over a WebSocket. */
import WebSocket from 'ws';
import type { Hub, Account } from './hub';

type Frame = Record<string, unknown>;

/** Timeout for the next frame. Generous, for busy machines. */
const FRAME_TIMEOUT_MS = 60_000;

export class Gateway {
  readonly #socket: WebSocket;
  readonly #frames: Frame[] = [];
  #onFrame: () => void = () => undefined;

  private constructor(socket: WebSocket) {
    this.#socket = socket;
    socket.on('message', (bytes: Buffer) => {
      this.#frames.push(JSON.parse(bytes.toString()) as Frame);
      this.#onFrame();
    });
  }

  static async connect(hub: Hub, owner: Account, agent: { id: string; name: string }, gatewayId = 'laptop', more: Frame = {}): Promise<Gateway> {
    const socket = new WebSocket(hub.url.replace('http', 'ws') + '/ws/gateway');
    await new Promise((done, failed) => {
      socket.once('open', done);
      socket.once('error', failed);
    });
    const gateway = new Gateway(socket);
    const deviceInfo = { hostname: gatewayId, platform: 'linux', arch: 'x64', nodeVersion: 'v22.0.0' };
    gateway.send({ type: 'gateway:auth', token: owner.token, gatewayId, deviceInfo, protocolVersion: '1', ...more });
    await gateway.next('server:gateway_auth_result');
    const work = { workingDirectory: '/tmp', capabilities: ['code'], type: 'claude-code' };
    gateway.send({ type: 'gateway:register_agent', agent: { ...agent, ...work } });
    await gateway.synced();
    return gateway;
  }

  send(frame: Frame): void {
    this.#socket.send(JSON.stringify(frame));
  }

  /** Waits for the next frame of a type. Frames before it are discarded. */
  async next(type: string): Promise<Frame> {
    for (;;) {
      const index = this.#frames.findIndex((frame) => frame['type'] === type);
      const [frame] = index < 0 ? [] : this.#frames.splice(0, index + 1).slice(-1);
      if (frame !== undefined) return frame;
      await new Promise<void>((resolve, reject) => {
        const timer = setTimeout(() => reject(new Error(`no ${type} frame within ${FRAME_TIMEOUT_MS} ms`)), FRAME_TIMEOUT_MS);
        this.#onFrame = () => {
          clearTimeout(timer);
          resolve();
        };
      });
    }
  }

  /** Resolves when the hub has processed all frames sent so far. */
  async synced(): Promise<void> {
    this.send({ type: 'gateway:ping', ts: Date.now() });
    await this.next('server:pong');
  }

  chunk(run: Frame, messageId: string, type: string, content: string, metadata?: Frame): void {
    this.send({ type: 'gateway:message_chunk', ...placeOf(run), messageId, chunk: { type, content, metadata } });
  }

  complete(run: Frame, messageId: string, fullContent: string): void {
    const { conversationId, depth } = run;
    this.send({ type: 'gateway:message_complete', ...placeOf(run), messageId, fullContent, conversationId, depth });
  }

  requestPermission(run: Frame, requestId: string, toolName: string, toolInput: Frame): void {
    this.send({ type: 'gateway:permission_request', requestId, ...placeOf(run), toolName, toolInput });
  }

  /** Sends a run event (plan, question, status …), as Parlor gateways do. */
  runEvent(run: Frame, event: Frame, messageId?: string): void {
    this.send({ type: 'gateway:run_event', ...placeOf(run), event, ...(messageId !== undefined && { messageId }) });
  }

  close(): void {
    this.#socket.close();
  }
}

/** Agent, room and session of a run, and its id if the gateway is a Parlor gateway. */
function placeOf({ agentId, roomId, sessionId, runId }: Frame): Frame {
  return { agentId, roomId, sessionId, runId };
}
