import { Socket } from 'node:net';
import { syncBuiltinESMExports } from 'node:module';
import timers from 'node:timers';

/** Maximum open connections and timers of an extension. */
const MAX_SOCKETS = 1_000;
const MAX_TIMERS = 10_000;

/** Minimum interval between reports about the same excess. Milliseconds. */
const REPORT_INTERVAL = 60_000;

interface Held {
  readonly sockets: Set<Socket>;
  readonly timers: Set<NodeJS.Timeout>;
}

/**
 * Limits the open connections and timers of each extension, so that a leak leaves enough for the others, and closes them
 * when the extension ends.
 */
export class ExtensionResources {
  readonly #current: () => string | undefined;
  readonly #excess: (extensionId: string, what: string) => void;
  readonly #held = new Map<string, Held>();
  readonly #told = new Map<string, number>();
  /** Ended extensions, which may open nothing more. */
  readonly #released = new Set<string>();
  #undo: (() => void) | null = null;

  /**
   * @param current id of the extension whose code is running
   * @param excess called when an extension exceeds a limit
   */
  constructor(
    current: () => string | undefined,
    excess: (extensionId: string, what: string) => void,
  ) {
    this.#current = current;
    this.#excess = excess;
  }

  /** Starts counting in the whole process. */
  begin(): void {
    if (this.#undo !== null) return;
    const undoSockets = this.#countSockets();
    const undoTimers = this.#countTimers();
    syncBuiltinESMExports();
    this.#undo = () => {
      undoSockets();
      undoTimers();
      syncBuiltinESMExports();
    };
  }

  /** Restores the original functions. */
  end(): void {
    this.#undo?.();
    this.#undo = null;
  }

  /** Closes everything that an extension has open, and prevents more. */
  release(extensionId: string): void {
    this.#released.add(extensionId);
    const held = this.#held.get(extensionId);
    this.#held.delete(extensionId);
    for (const socket of held?.sockets ?? []) socket.destroy();
    for (const timer of held?.timers ?? []) clearTimeout(timer);
  }

  #of(extensionId: string): Held {
    let held = this.#held.get(extensionId);
    if (held === undefined) {
      held = { sockets: new Set(), timers: new Set() };
      this.#held.set(extensionId, held);
    }
    return held;
  }

  #refuse(extensionId: string, what: string): Error {
    const now = performance.now();
    const key = `${extensionId} ${what}`;
    if (now - (this.#told.get(key) ?? Number.NEGATIVE_INFINITY) >= REPORT_INTERVAL) {
      this.#told.set(key, now);
      this.#excess(extensionId, what);
    }
    return new Error(`the extension ${extensionId} has ${what}`);
  }

  #countSockets(): () => void {
    const connect = Reflect.get(Socket.prototype, 'connect');
    const begin = (socket: Socket): Error | null => {
      const id = this.#current();
      if (id === undefined) return null;
      const { sockets } = this.#of(id);
      if (sockets.has(socket)) return null;
      if (this.#released.has(id)) return new Error(`the extension ${id} has ended`);
      if (sockets.size >= MAX_SOCKETS) return this.#refuse(id, `over ${MAX_SOCKETS} connections`);
      sockets.add(socket);
      socket.once('close', () => sockets.delete(socket));
      return null;
    };
    Socket.prototype.connect = function (this: Socket, ...given: unknown[]) {
      const refused = begin(this);
      if (refused === null) return Reflect.apply(connect, this, given) as Socket;
      // Fails like a refused connection, after the caller has attached its listeners.
      process.nextTick(() => this.destroy(refused));
      return this;
    };
    return () => {
      Socket.prototype.connect = connect;
    };
  }

  #countTimers(): () => void {
    const real = { setTimeout, setInterval, clearTimeout, clearInterval };
    const make =
      (once: boolean) =>
      (target: typeof setTimeout, self: unknown, given: unknown[]): NodeJS.Timeout => {
        const id = this.#current();
        const [callback, ...rest] = given;
        if (id === undefined || typeof callback !== 'function') {
          return Reflect.apply(target, self, given);
        }
        if (this.#released.has(id)) {
          const timer = Reflect.apply(target, self, given) as NodeJS.Timeout;
          real.clearTimeout(timer);
          return timer;
        }
        const held = this.#of(id).timers;
        if (held.size >= MAX_TIMERS) sweep(held);
        if (held.size >= MAX_TIMERS) throw this.#refuse(id, `over ${MAX_TIMERS} timers`);
        const called = function (this: unknown, ...parameters: unknown[]): unknown {
          if (once) held.delete(timer);
          return Reflect.apply(callback, this, parameters);
        };
        const timer = Reflect.apply(target, self, [called, ...rest]) as NodeJS.Timeout;
        held.add(timer);
        return timer;
      };
    const clear = (target: typeof clearTimeout, self: unknown, given: [NodeJS.Timeout]): void => {
      const id = this.#current();
      if (id !== undefined) this.#held.get(id)?.timers.delete(given[0]);
      Reflect.apply(target, self, given);
    };
    const ours = {
      setTimeout: new Proxy(real.setTimeout, { apply: make(true) }),
      setInterval: new Proxy(real.setInterval, { apply: make(false) }),
      clearTimeout: new Proxy(real.clearTimeout, { apply: clear }),
      clearInterval: new Proxy(real.clearInterval, { apply: clear }),
    };
    Object.assign(globalThis, ours);
    Object.assign(timers, ours);
    return () => {
      Object.assign(globalThis, real);
      Object.assign(timers, real);
    };
  }
}

/** Removes timers that were ended by other means than the clear functions. */
function sweep(held: Set<NodeJS.Timeout>): void {
  for (const timer of held) {
    if ((timer as { readonly _destroyed?: boolean })._destroyed === true) held.delete(timer);
  }
}
