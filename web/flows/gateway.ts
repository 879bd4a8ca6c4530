/** A gateway that does what a test tells it to, over the protocol alone. */
import WebSocket from 'ws';
import type { Hub, Person } from './hub';

type Frame = Record<string, unknown>;

/** So long a busy machine may take. */
const PATIENCE_MS = 60_000;

export class Gateway {
  readonly #socket: WebSocket;
  readonly #heard: Frame[] = [];
  #bell: () => void = () => undefined;

  private constructor(socket: WebSocket) {
    this.#socket = socket;
    socket.on('message', (bytes: Buffer) => {
      this.#heard.push(JSON.parse(bytes.toString()) as Frame);
      this.#bell();
    });
  }

  static async connect(hub: Hub, owner: Person, agent: { id: string; name: string }, gatewayId = 'laptop'): Promise<Gateway> {
    const socket = new WebSocket(hub.url.replace('http', 'ws') + '/ws/gateway');
    await new Promise((done, failed) => {
      socket.once('open', done);
      socket.once('error', failed);
    });
    const gateway = new Gateway(socket);
    const deviceInfo = { hostname: gatewayId, platform: 'linux', arch: 'x64', nodeVersion: 'v22.0.0' };
    gateway.send({ type: 'gateway:auth', token: owner.token, gatewayId, deviceInfo, protocolVersion: '1' });
    await gateway.next('server:gateway_auth_result');
    const work = { workingDirectory: '/tmp', capabilities: ['code'], type: 'claude-code' };
    gateway.send({ type: 'gateway:register_agent', agent: { ...agent, ...work } });
    await gateway.settled();
    return gateway;
  }

  send(frame: Frame): void {
    this.#socket.send(JSON.stringify(frame));
  }

  /** The next frame of a kind; those before it are passed over. */
  async next(type: string): Promise<Frame> {
    for (;;) {
      const at = this.#heard.findIndex((frame) => frame['type'] === type);
      const [frame] = at < 0 ? [] : this.#heard.splice(0, at + 1).slice(-1);
      if (frame !== undefined) return frame;
      await new Promise<void>((ring, fail) => {
        const timer = setTimeout(() => fail(new Error(`nothing of ${type} came`)), PATIENCE_MS);
        this.#bell = () => {
          clearTimeout(timer);
          ring();
        };
      });
    }
  }

  /** Until the hub has dealt with all that was said. */
  async settled(): Promise<void> {
    this.send({ type: 'gateway:ping', ts: Date.now() });
    await this.next('server:pong');
  }

  chunk(turn: Frame, messageId: string, type: string, content: string, metadata?: Frame): void {
    const { roomId, agentId } = turn;
    this.send({ type: 'gateway:message_chunk', roomId, agentId, messageId, chunk: { type, content, metadata } });
  }

  complete(turn: Frame, messageId: string, fullContent: string): void {
    const { roomId, agentId, conversationId, depth } = turn;
    this.send({ type: 'gateway:message_complete', roomId, agentId, messageId, fullContent, conversationId, depth });
  }

  ask(turn: Frame, requestId: string, toolName: string, toolInput: Frame): void {
    const { roomId, agentId } = turn;
    this.send({ type: 'gateway:permission_request', requestId, agentId, roomId, toolName, toolInput });
  }

  /** What it tells of its turn beside what it says, as Parlor's own gateways do. */
  tell(turn: Frame, event: Frame, messageId?: string): void {
    const { roomId, agentId } = turn;
    this.send({ type: 'gateway:run_event', roomId, agentId, event, ...(messageId !== undefined && { messageId }) });
  }

  close(): void {
    this.#socket.close();
  }
}
