/** JSON Web Tokens, and a server that an `authUrl` points to. */
import { createHmac } from 'node:crypto';
import { createServer, type IncomingMessage, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';

export interface Claims {
  /** Seconds since 1970. */
  iat?: number;
  exp?: number;
  'x-ably-capability'?: string;
  'x-ably-clientId'?: string;
}

/** Signs a token with the secret of a key, valid for an hour if `claims` do not set another time. */
export function jwt(key: string, claims: Claims = {}, header: Record<string, string> = {}): string {
  const [name = '', secret = ''] = key.split(':');
  const now = Math.floor(Date.now() / 1000);
  const head = part({ typ: 'JWT', alg: 'HS256', kid: name, ...header });
  const body = part({ iat: now, exp: now + 3600, ...claims });
  const tag = createHmac('sha256', secret).update(`${head}.${body}`).digest('base64url');
  return `${head}.${body}.${tag}`;
}

function part(value: unknown): string {
  return Buffer.from(JSON.stringify(value)).toString('base64url');
}

export interface AuthRequest {
  method: string;
  url: URL;
  headers: IncomingMessage['headers'];
  body: string;
}

/** A server that answers each request with the result of `answer`. */
export class AuthServer {
  readonly requests: AuthRequest[] = [];
  readonly #server: Server;

  private constructor(answer: (request: AuthRequest) => Promise<AuthAnswer>) {
    this.#server = createServer((incoming, response) => {
      const chunks: Buffer[] = [];
      incoming.on('data', (chunk: Buffer) => chunks.push(chunk));
      incoming.on('end', () => {
        const url = new URL(incoming.url ?? '/', 'http://localhost');
        const body = Buffer.concat(chunks).toString();
        const request = { method: incoming.method ?? '', url, headers: incoming.headers, body };
        this.requests.push(request);
        void answer(request).then(({ status = 200, type = 'application/json', text }) => {
          response.writeHead(status, { 'content-type': type }).end(text);
        });
      });
    });
  }

  static async start(answer: (request: AuthRequest) => Promise<AuthAnswer>): Promise<AuthServer> {
    const server = new AuthServer(answer);
    await new Promise<void>((done) => server.#server.listen(0, '127.0.0.1', done));
    return server;
  }

  get url(): string {
    return `http://127.0.0.1:${(this.#server.address() as AddressInfo).port}/token`;
  }

  close(): void {
    this.#server.close();
    this.#server.closeAllConnections();
  }
}

export interface AuthAnswer {
  status?: number;
  type?: string;
  text: string;
}
