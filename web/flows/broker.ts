/** A program on the broker protocol, driven by a test. */
import WebSocket from 'ws';
import type { Account, Hub } from './hub';

type Frame = Record<string, unknown>;

export class Broker {
  readonly #socket: WebSocket;
  #requests = 0;

  private constructor(socket: WebSocket) {
    this.#socket = socket;
  }

  static async connect(hub: Hub, account: Account): Promise<Broker> {
    const socket = new WebSocket(hub.url.replace('http', 'ws') + '/ws/broker');
    await new Promise((done, failed) => {
      socket.once('open', done);
      socket.once('error', failed);
    });
    const broker = new Broker(socket);
    await broker.ask({ type: 'auth', token: account.token });
    return broker;
  }

  /** Sends a request and returns its answer. An error answer throws. */
  async ask(request: Frame): Promise<Frame> {
    this.#requests += 1;
    const reqId = `r${this.#requests}`;
    const answer = new Promise<Frame>((resolve, reject) => {
      const onMessage = (bytes: Buffer) => {
        const frame = JSON.parse(bytes.toString()) as Frame;
        if (frame['reqId'] !== reqId) return;
        this.#socket.off('message', onMessage);
        this.#socket.off('close', onClose);
        if (String(frame['type']).endsWith('.error')) reject(new Error(bytes.toString()));
        else resolve(frame);
      };
      const onClose = () => reject(new Error('the hub closed the connection'));
      this.#socket.on('message', onMessage);
      this.#socket.once('close', onClose);
    });
    this.#socket.send(JSON.stringify({ ...request, reqId }));
    return answer;
  }

  createAgent(id: string, config: Frame): Promise<Frame> {
    return this.ask({ type: 'agent.create', id, config });
  }

  subscribe(agentId: string, sessionId: string, pattern: string): Promise<Frame> {
    return this.ask({ type: 'msg.session.sub.add', agentId, sessionId, pattern });
  }

  route(from: string, path: string, payload: Frame): Promise<Frame> {
    return this.ask({ type: 'msg.route', from, path, payload });
  }

  /** Leases all waiting messages of an agent's own mailbox. */
  async lease(agentId: string, lease: number): Promise<Frame[]> {
    return (await this.ask({ type: 'msg.receive', agentId, lease }))['messages'] as Frame[];
  }

  close(): void {
    this.#socket.close();
  }
}
