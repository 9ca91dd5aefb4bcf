import { fork, type ChildProcess, type ForkOptions } from 'node:child_process';
import { once } from 'node:events';
import { fileURLToPath } from 'node:url';
import { Signal } from '../../support/signals.ts';
import type { Order, Message } from './event-log-child.ts';

/** A child process on the event log that a test controls. */
export class Child {
  readonly messages = new Signal<Message>('a message of the process');
  readonly #process: ChildProcess;
  readonly #gone: Promise<unknown>;

  private constructor(process: ChildProcess) {
    this.#process = process;
    this.#gone = once(process, 'exit');
    process.on('message', (message: Message) => this.messages.send(message));
  }

  static async start(options: ForkOptions = {}): Promise<Child> {
    const module = fileURLToPath(new URL('./event-log-child.ts', import.meta.url));
    const child = new Child(fork(module, { execArgv: ['--import', 'tsx'], ...options }));
    await child.until('started');
    return child;
  }

  /** Starts a process, and opens the log in it. */
  static async over(directory: string): Promise<Child> {
    const child = await Child.start();
    child.order({ kind: 'open', directory });
    await child.until('opened');
    return child;
  }

  order(order: Order): void {
    this.#process.send(order);
  }

  /** The first message of a kind, past or future. */
  async until<K extends Message['kind']>(kind: K): Promise<Extract<Message, { readonly kind: K }>> {
    const message = await this.messages.wait((one) => one.kind === kind, {
      limitMs: 30_000,
      what: `the message '${kind}' of the process`,
    });
    return message as Extract<Message, { readonly kind: K }>;
  }

  /** Ends it like a power failure. */
  async kill(): Promise<void> {
    this.#process.kill('SIGKILL');
    await this.#gone;
  }

  /** Lets it close the log and exit. */
  async close(): Promise<void> {
    this.order({ kind: 'close' });
    await this.#gone;
  }
}
