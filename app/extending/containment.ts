import { AsyncLocalStorage } from 'node:async_hooks';
import { syncBuiltinESMExports } from 'node:module';
import { ExtensionResources } from './extension-resources.ts';

/** Something that an extension did which would have ended the process. */
export type Blame = (extensionId: string, what: string, error: unknown) => void;

/** What ends the process, and whose code it is that runs. */
class ExitAttempt extends Error {
  constructor(what: string) {
    super(`${what} was called`);
    this.name = 'ExitAttempt';
  }
}

/**
 * Keeps what extensions do from ending the process: their calls of `process.exit` and `process.abort` are refused,
 * and what they leave uncaught (in a timer, in a promise that nobody waits for) is told and goes no further.
 *
 * Whose code runs is known by the asynchronous context that it was entered in. That costs a little with every
 * promise, so it begins with the first extension that is not of this service.
 */
export class Containment {
  readonly #context = new AsyncLocalStorage<string>();
  readonly #blame: Blame;
  readonly #resources: ExtensionResources;
  #undo: (() => void) | null = null;

  constructor(blame: Blame) {
    this.#blame = blame;
    this.#resources = new ExtensionResources(
      () => this.#context.getStore(),
      (id, what) => blame(id, `it has ${what}`, new Error('more are refused')),
    );
  }

  /** Calls into an extension's code. */
  enter<T>(extensionId: string, call: () => T): T {
    this.#begin();
    return this.#context.run(extensionId, call);
  }

  /** Takes away the connections and timers that an extension has left. */
  release(extensionId: string): void {
    this.#resources.release(extensionId);
  }

  /** Puts everything back as it was. */
  close(): void {
    this.#undo?.();
    this.#undo = null;
  }

  #begin(): void {
    if (this.#undo !== null) return;
    const exit = Reflect.get(process, 'exit');
    const abort = Reflect.get(process, 'abort');
    const refuse = (what: string): void => {
      const id = this.#context.getStore();
      if (id === undefined) return;
      const error = new ExitAttempt(what);
      this.#blame(id, `${what} was called`, error);
      throw error;
    };
    process.exit = (code) => {
      refuse('process.exit');
      return exit.call(process, code);
    };
    process.abort = () => {
      refuse('process.abort');
      return abort.call(process);
    };
    syncBuiltinESMExports();
    const uncaught = (error: unknown): void => {
      const id = this.#context.getStore();
      if (id !== undefined) {
        // Was told when it was refused.
        if (!(error instanceof ExitAttempt)) this.#blame(id, 'something was left uncaught', error);
        return;
      }
      // Others listen too: it is theirs. Alone, this stands in for what Node would do.
      if (process.listenerCount('uncaughtException') > 1) return;
      process.stderr.write(`${error instanceof Error ? error.stack : String(error)}\n`);
      exit.call(process, 1);
    };
    process.on('uncaughtException', uncaught);
    this.#resources.begin();
    this.#undo = () => {
      this.#resources.end();
      process.off('uncaughtException', uncaught);
      process.exit = exit;
      process.abort = abort;
      syncBuiltinESMExports();
    };
  }
}
