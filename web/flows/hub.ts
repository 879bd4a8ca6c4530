/** A real hub, as its users have it: a process with a folder. */
import { spawn, type ChildProcess } from 'node:child_process';
import { mkdtempSync, rmSync } from 'node:fs';
import { createServer } from 'node:net';
import { tmpdir } from 'node:os';
import { join, resolve } from 'node:path';

export const BINARY = process.env['PARLOR_BIN'] ?? resolve(import.meta.dirname, '../../target/debug/parlor');
export const PASSWORD = 'Correct-horse-7';

export interface Person {
  id: string;
  username: string;
  token: string;
}

export class Hub {
  readonly url: string;
  readonly #port: number;
  readonly #data: string;
  readonly #environment: Record<string, string>;
  #process: ChildProcess | undefined;
  #printed = '';

  private constructor(port: number, environment: Record<string, string>) {
    this.#port = port;
    this.url = `http://127.0.0.1:${port}`;
    this.#data = mkdtempSync(join(tmpdir(), 'parlor-flow-'));
    this.#environment = environment;
  }

  /** With an admin already, and without the welcome room. */
  static withAdmin(settings: Record<string, string> = {}): Promise<Hub> {
    return Hub.#started({ PARLOR_ADMIN_PASSWORD: PASSWORD, PARLOR_WELCOME: 'off', ...settings });
  }

  /** As it is the first time: nobody is there yet. */
  static fresh(): Promise<Hub> {
    return Hub.#started({});
  }

  static async #started(environment: Record<string, string>): Promise<Hub> {
    const hub = new Hub(await freePort(), environment);
    await hub.start();
    return hub;
  }

  async start(): Promise<void> {
    const foreign = Object.entries(process.env).filter(([name]) => !name.startsWith('PARLOR_'));
    const env = { ...Object.fromEntries(foreign), ...this.#environment, PARLOR_LIMITS: 'off' };
    const hub = spawn(BINARY, ['--listen', `127.0.0.1:${this.#port}`, '--data', this.#data], { env });
    this.#process = hub;
    this.#printed = '';
    await new Promise<void>((done, failed) => {
      const hear = (bytes: Buffer) => {
        this.#printed += bytes.toString();
        if (/Open +http/.test(this.#printed)) done();
      };
      hub.stdout.on('data', hear);
      hub.stderr.on('data', hear);
      hub.on('error', failed);
      hub.on('exit', () => failed(new Error(`the hub ended:\n${this.#printed}`)));
    });
  }

  /** As a power cut does it. */
  async kill(): Promise<void> {
    const hub = this.#process;
    if (hub === undefined || hub.exitCode !== null || hub.signalCode !== null) return;
    const gone = new Promise((done) => hub.once('exit', done));
    hub.kill('SIGKILL');
    await gone;
  }

  async remove(): Promise<void> {
    await this.kill();
    rmSync(this.#data, { recursive: true, force: true });
  }

  /** The link that makes the first admin. It is printed a moment after the address. */
  async setupLink(): Promise<string> {
    for (;;) {
      const link = /http\S+\/setup#token=\S+/.exec(this.#printed)?.[0];
      if (link !== undefined) return link;
      await new Promise((done) => this.#process?.stdout?.once('data', done));
    }
  }

  async signIn(username: string): Promise<Person> {
    const { user, accessToken } = await this.#request('POST', '/api/auth/login', { username, password: PASSWORD });
    return { id: String(fields(user)['id']), username, token: String(accessToken) };
  }

  async addPerson(admin: Person, username: string, displayName: string): Promise<Person> {
    await this.call(admin, 'POST', '/api/users', { username, displayName, password: PASSWORD });
    return this.signIn(username);
  }

  async makeRoom(owner: Person, name: string, members: Person[]): Promise<string> {
    const memberIds = members.map((member) => member.id);
    return String((await this.call(owner, 'POST', '/api/rooms', { name, memberIds }))['id']);
  }

  /** They come without an envelope. */
  async settings(person: Person): Promise<Record<string, unknown>> {
    const answer = await fetch(`${this.url}/api/settings`, { headers: { authorization: `Bearer ${person.token}` } });
    return fields(await answer.json());
  }

  call(person: Person, method: string, path: string, body?: unknown): Promise<Record<string, unknown>> {
    return this.#request(method, path, body, person.token);
  }

  async #request(method: string, path: string, body?: unknown, token?: string): Promise<Record<string, unknown>> {
    const headers: Record<string, string> = { 'content-type': 'application/json' };
    if (token !== undefined) headers['authorization'] = `Bearer ${token}`;
    const answer = await fetch(this.url + path, { method, headers, body: JSON.stringify(body) });
    const said = fields(await answer.json());
    if (!answer.ok) throw new Error(`${method} ${path}: ${JSON.stringify(said)}`);
    return fields(said['data']);
  }
}

function fields(value: unknown): Record<string, unknown> {
  return typeof value === 'object' && value !== null ? (value as Record<string, unknown>) : {};
}

/** Below those that systems give to outgoing connections: nothing else takes it before the hub does, or while it restarts. */
const PORTS = { from: 10_000, count: 20_000 };

async function freePort(): Promise<number> {
  for (;;) {
    const port = PORTS.from + Math.floor(Math.random() * PORTS.count);
    if (await isFree(port)) return port;
  }
}

function isFree(port: number): Promise<boolean> {
  return new Promise((answer) => {
    const server = createServer();
    server.once('error', () => answer(false));
    server.listen(port, '127.0.0.1', () => server.close(() => answer(true)));
  });
}
