/** Fake OpenAI-compatible endpoint that streams one fixed response. */
import { createServer, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';

export class Model {
  readonly #server: Server;

  private constructor(server: Server) {
    this.#server = server;
  }

  static async start(texts: string[]): Promise<Model> {
    const chunks = texts.map((content) => ({ choices: [{ index: 0, delta: { content } }] }));
    const end = { choices: [{ index: 0, delta: {}, finish_reason: 'stop' }] };
    const server = createServer((request, response) => {
      request.resume();
      request.on('end', () => {
        response.writeHead(200, { 'content-type': 'text/event-stream' });
        for (const chunk of [...chunks, end]) response.write(`data: ${JSON.stringify(chunk)}\n\n`);
        response.end('data: [DONE]\n\n');
      });
    });
    await new Promise<void>((done) => server.listen(0, '127.0.0.1', done));
    return new Model(server);
  }

  get address(): string {
    return `127.0.0.1:${(this.#server.address() as AddressInfo).port}`;
  }

  stop(): void {
    this.#server.closeAllConnections();
    this.#server.close();
  }
}
