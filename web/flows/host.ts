/** Runs the setup commands of an agent as on another machine: with an own home folder and environment. */
import { spawn, type ChildProcess } from 'node:child_process';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { BINARY } from './hub';

export class Host {
  readonly #home = mkdtempSync(join(tmpdir(), 'parlor-host-'));
  readonly #running: ChildProcess[] = [];

  async run(command: string): Promise<void> {
    const child = this.#spawn(command);
    let printed = '';
    [child.stdout, child.stderr].forEach((stream) => stream?.on('data', (bytes: Buffer) => (printed += bytes.toString())));
    const code = await new Promise((done) => child.once('exit', done));
    if (code !== 0) throw new Error(`\`${command}\` ended with ${String(code)}:\n${printed}`);
  }

  start(command: string): void {
    // `exec` replaces the shell, so that `stop` signals the gateway itself.
    this.#running.push(this.#spawn(`exec ${command}`));
  }

  async stop(): Promise<void> {
    const running = this.#running.filter((child) => child.exitCode === null && child.signalCode === null);
    await Promise.all(
      running.map((child) => {
        const gone = new Promise((done) => child.once('exit', done));
        child.kill('SIGTERM');
        return gone;
      }),
    );
    rmSync(this.#home, { recursive: true, force: true });
  }

  #spawn(command: string): ChildProcess {
    const foreign = Object.entries(process.env).filter(([name]) => !name.startsWith('PARLOR_') && !name.startsWith('XDG_'));
    const path = `${dirname(BINARY)}:${process.env['PATH'] ?? ''}`;
    const env = { ...Object.fromEntries(foreign), HOME: this.#home, PATH: path };
    return spawn('sh', ['-c', command], { env, cwd: this.#home });
  }
}
