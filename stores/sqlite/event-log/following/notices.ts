import { createHash, randomUUID } from 'node:crypto';
import { readdirSync, realpathSync, rmSync, statSync } from 'node:fs';
import { connect, createServer, type Server, type Socket } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { makeFolder } from '../../../folder.ts';

/**
 * Notifies the processes that share a data directory of each other's commits. Notices are hints: they may be lost,
 * duplicated, or forged by anyone who may write the directory. Receivers check the store, and also poll it.
 */
export interface Notices {
  /** Whether other processes can reach this one. */
  readonly isReachable: boolean;
  /** Sends a short line to all other processes. Lines of one turn of the event loop go together, without duplicates. */
  publish(message: string): void;
  /** Receives notices of other processes until the returned function is called. */
  subscribe(listener: (message: string) => void): () => void;
  close(): Promise<void>;
}

/** The longest socket path on any known system. */
const MAX_SOCKET_PATH = 100;
/** Bytes that may wait for a process that does not read; further notices to it are dropped. */
const MAX_UNSENT_BYTES = 64 * 1024;
/** A longer line is not a notice. */
const MAX_LINE_LENGTH = 4 * 1024;

/**
 * Joins the processes that share a directory: listens on a socket in its `peers` folder and connects to all others
 * there. Without sockets, processes rely on polling. Does not keep the process alive.
 * @param directory null: neither sends nor receives
 */
export async function openNotices(directory: string | null): Promise<Notices> {
  const bus = new SocketNotices();
  const folder = directory === null ? undefined : peersFolder(directory);
  if (folder !== undefined) await bus.open(folder);
  return bus;
}

/** The folder for sockets; undefined if there can be none. */
function peersFolder(directory: string): string | undefined {
  if (process.platform === 'win32') return undefined;
  makeFolder(directory);
  const beside = join(realpathSync(directory), 'peers');
  const longest = join(beside, socketName());
  const folder =
    Buffer.byteLength(longest) <= MAX_SOCKET_PATH
      ? beside
      : join(
          tmpdir(),
          `svc-peers-${createHash('sha256').update(beside).digest('hex').slice(0, 16)}`,
        );
  try {
    makeFolder(folder);
    // In the shared temporary folder, a folder of that name may belong to another user.
    return statSync(folder).uid === process.getuid?.() ? folder : undefined;
  } catch {
    // The directory may be read-only, which the log reports itself. Without notices, only speed is lost.
    return undefined;
  }
}

function socketName(): string {
  return `${randomUUID().slice(0, 8)}.sock`;
}

class SocketNotices implements Notices {
  readonly #listeners = new Set<(message: string) => void>();
  readonly #sockets = new Set<Socket>();
  /** The socket used for each peer, as two may connect to each other at once. */
  readonly #peers = new Map<string, Socket>();
  readonly #pending = new Set<string>();
  readonly #id = randomUUID();
  #server: Server | undefined;
  #path: string | undefined;
  #closed = false;

  /** Listens before connecting, so that one of two processes that start at once finds the other. */
  async open(folder: string): Promise<void> {
    const path = join(folder, socketName());
    const server = createServer((socket) => this.#add(socket));
    server.unref();
    const listening = await new Promise<boolean>((resolve) => {
      server.once('error', () => resolve(false));
      server.listen(path, () => resolve(true));
    });
    if (!listening) return;
    server.on('error', () => this.#forgetServer());
    this.#server = server;
    this.#path = path;
    const others = readdirSync(folder).filter(
      (name) => name.endsWith('.sock') && join(folder, name) !== path,
    );
    await Promise.all(others.map((name) => this.#connect(join(folder, name))));
  }

  get isReachable(): boolean {
    return this.#server !== undefined;
  }

  publish(message: string): void {
    if (this.#closed || this.#peers.size === 0) return;
    if (this.#pending.size === 0) setImmediate(() => this.#flush());
    this.#pending.add(message);
  }

  subscribe(listener: (message: string) => void): () => void {
    this.#listeners.add(listener);
    return () => this.#listeners.delete(listener);
  }

  async close(): Promise<void> {
    if (this.#closed) return;
    this.#flush();
    this.#closed = true;
    for (const socket of this.#sockets) socket.destroySoon();
    const server = this.#server;
    const closed = new Promise<void>((resolve) => {
      if (server === undefined) resolve();
      else server.close(() => resolve());
    });
    await new Promise((resolve) => setImmediate(resolve));
    // The remaining lines wait for a process that does not read, possibly a stopped one.
    for (const socket of this.#sockets) socket.destroy();
    await closed;
    if (server !== undefined) this.#forgetServer();
  }

  #forgetServer(): void {
    if (this.#path !== undefined) rmSync(this.#path, { force: true });
    this.#path = undefined;
    this.#server = undefined;
  }

  /** Resolves when connected, or when nobody is there; then a killed process's socket is removed. */
  #connect(path: string): Promise<void> {
    return new Promise((resolve) => {
      const socket = connect(path);
      socket.once('connect', () => {
        this.#add(socket);
        resolve();
      });
      socket.once('error', (error: NodeJS.ErrnoException) => {
        if (error.code === 'ECONNREFUSED') rmSync(path, { force: true });
        resolve();
      });
    });
  }

  #add(socket: Socket): void {
    socket.unref();
    socket.setEncoding('utf8');
    this.#sockets.add(socket);
    let peer: string | undefined;
    let rest = '';
    socket.on('data', (text: string) => {
      const lines = (rest + text).split('\n');
      rest = lines.pop() ?? '';
      if (rest.length > MAX_LINE_LENGTH) socket.destroy();
      for (const line of lines) {
        if (peer === undefined) {
          peer = line;
          this.#peers.set(line, socket);
        } else {
          for (const listener of this.#listeners) listener(line);
        }
      }
    });
    // 'close' follows. The other process is gone, or will connect again.
    socket.on('error', () => socket.destroy());
    socket.on('close', () => {
      this.#sockets.delete(socket);
      if (peer !== undefined && this.#peers.get(peer) === socket) this.#peers.delete(peer);
    });
    socket.write(`${this.#id}\n`);
  }

  #flush(): void {
    if (this.#pending.size === 0) return;
    const text = `${[...this.#pending].join('\n')}\n`;
    this.#pending.clear();
    for (const socket of this.#peers.values()) {
      if (socket.writableLength < MAX_UNSENT_BYTES) socket.write(text);
    }
  }
}
