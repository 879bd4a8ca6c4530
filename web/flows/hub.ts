/** A real hub: a process with its own data directory. */
import { spawn, type ChildProcess } from 'node:child_process';
import { mkdtempSync, rmSync } from 'node:fs';
import { createServer } from 'node:net';
import { tmpdir } from 'node:os';
import { join, resolve } from 'node:path';

export const BINARY = process.env['PARLOR_BIN'] ?? resolve(import.meta.dirname, '../../target/debug/parlor');
export const PASSWORD = 'Correct-horse-7';

export interface Account {
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

  /** Starts a hub with an admin account and without the welcome room. */
  static withAdmin(settings: Record<string, string> = {}): Promise<Hub> {
    return Hub.#started({ PARLOR_ADMIN_PASSWORD: PASSWORD, PARLOR_WELCOME: 'off', ...settings });
  }

  /** Starts a hub without any account, as on first run. */
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
      const onOutput = (bytes: Buffer) => {
        this.#printed += bytes.toString();
        if (/Open +http/.test(this.#printed)) done();
      };
      hub.stdout.on('data', onOutput);
      hub.stderr.on('data', onOutput);
      hub.on('error', failed);
      hub.on('exit', () => failed(new Error(`the hub ended:\n${this.#printed}`)));
    });
  }

  /** Ends the process with SIGKILL, like a power failure. */
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

  /** Setup link for the first admin. The hub prints it shortly after its address. */
  async setupLink(): Promise<string> {
    for (;;) {
      const link = /http\S+\/setup#token=\S+/.exec(this.#printed)?.[0];
      if (link !== undefined) return link;
      await new Promise((done) => this.#process?.stdout?.once('data', done));
    }
  }

  async signIn(username: string): Promise<Account> {
    const { user, accessToken } = await this.#request('POST', '/api/auth/login', { username, password: PASSWORD });
    return { id: String(fields(user)['id']), username, token: String(accessToken) };
  }

  async addUser(admin: Account, username: string, displayName: string): Promise<Account> {
    await this.call(admin, 'POST', '/api/users', { username, displayName, password: PASSWORD });
    return this.signIn(username);
  }

  async createRoom(owner: Account, name: string, members: Account[]): Promise<string> {
    const memberIds = members.map((member) => member.id);
    return String((await this.call(owner, 'POST', '/api/rooms', { name, memberIds }))['id']);
  }

  /** Hub settings. Their response has no `data` envelope. */
  async settings(person: Account): Promise<Record<string, unknown>> {
    const response = await fetch(`${this.url}/api/settings`, { headers: { authorization: `Bearer ${person.token}` } });
    return fields(await response.json());
  }

  call(person: Account, method: string, path: string, body?: unknown): Promise<Record<string, unknown>> {
    return this.#request(method, path, body, person.token);
  }

  async #request(method: string, path: string, body?: unknown, token?: string): Promise<Record<string, unknown>> {
    const headers: Record<string, string> = { 'content-type': 'application/json' };
    if (token !== undefined) headers['authorization'] = `Bearer ${token}`;
    const response = await fetch(this.url + path, { method, headers, body: JSON.stringify(body) });
    const parsed = fields(await response.json());
    if (!response.ok) throw new Error(`${method} ${path}: ${JSON.stringify(parsed)}`);
    return fields(parsed['data']);
  }
}

function fields(value: unknown): Record<string, unknown> {
  return typeof value === 'object' && value !== null ? (value as Record<string, unknown>) : {};
}

/**
 * Below the ephemeral port range, so that no outgoing connection takes the port before the hub starts or
 * restarts.
 */
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
