/** A TCP proxy between a client and the hub. A test cuts or freezes its connections. */
import { connect, createServer, type AddressInfo, type Server, type Socket } from 'node:net';

export class Wire {
  readonly #server: Server;
  readonly #pairs = new Set<[Socket, Socket]>();
  #refuses = false;
  #accepted = 0;

  private constructor(url: string) {
    const { hostname, port } = new URL(url);
    this.#server = createServer((client) => {
      client.on('error', () => client.destroy());
      if (this.#refuses) {
        client.destroy();
        return;
      }
      this.#accepted += 1;
      const hub = connect(Number(port), hostname);
      const pair: [Socket, Socket] = [client, hub];
      this.#pairs.add(pair);
      client.pipe(hub);
      hub.pipe(client);
      for (const socket of pair) {
        socket.setNoDelay(true);
        socket.on('error', () => this.#end(pair));
        socket.on('close', () => this.#end(pair));
      }
    });
  }

  static async to(url: string): Promise<Wire> {
    const wire = new Wire(url);
    await new Promise<void>((done) => wire.#server.listen(0, '127.0.0.1', done));
    return wire;
  }

  get port(): number {
    return (this.#server.address() as AddressInfo).port;
  }

  /** Number of connections so far, without refused ones. */
  get accepted(): number {
    return this.#accepted;
  }

  /** Ends every connection without a close frame. */
  cut(): void {
    for (const pair of [...this.#pairs]) this.#end(pair);
  }

  /** Ends every connection, and each new one until {@link accept}. */
  refuse(): void {
    this.#refuses = true;
    this.cut();
  }

  accept(): void {
    this.#refuses = false;
  }

  /** Delays the bytes that the hub sends, until {@link release} or {@link cut}. */
  hold(): void {
    for (const [client, hub] of this.#pairs) {
      hub.unpipe(client);
      hub.pause();
    }
  }

  release(): void {
    for (const [client, hub] of this.#pairs) hub.pipe(client);
  }

  close(): void {
    this.refuse();
    this.#server.close();
  }

  #end(pair: [Socket, Socket]): void {
    this.#pairs.delete(pair);
    for (const socket of pair) socket.destroy();
  }
}
