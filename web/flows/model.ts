/** A model that says one thing, as servers of models do: in pieces, over HTTP. */
import { createServer, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';

export class Model {
  readonly #server: Server;

  private constructor(server: Server) {
    this.#server = server;
  }

  static async start(words: string[]): Promise<Model> {
    const pieces = words.map((content) => ({ choices: [{ index: 0, delta: { content } }] }));
    const end = { choices: [{ index: 0, delta: {}, finish_reason: 'stop' }] };
    const server = createServer((asked, answer) => {
      asked.resume();
      asked.on('end', () => {
        answer.writeHead(200, { 'content-type': 'text/event-stream' });
        for (const piece of [...pieces, end]) answer.write(`data: ${JSON.stringify(piece)}\n\n`);
        answer.end('data: [DONE]\n\n');
      });
    });
    await new Promise<void>((done) => server.listen(0, '127.0.0.1', done));
    return new Model(server);
  }

  get place(): string {
    return `127.0.0.1:${(this.#server.address() as AddressInfo).port}`;
  }

  stop(): void {
    this.#server.closeAllConnections();
    this.#server.close();
  }
}
