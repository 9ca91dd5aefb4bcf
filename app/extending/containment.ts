import { AsyncLocalStorage } from 'node:async_hooks';
import { syncBuiltinESMExports } from 'node:module';
import { ExtensionResources } from './extension-resources.ts';

/** Reports something that an extension did and that would have ended the process. */
export type Blame = (extensionId: string, what: string, error: unknown) => void;

/** An extension called `process.exit` or `process.abort`. */
class ExitAttemptError extends Error {
  constructor(what: string) {
    super(`${what} was called`);
    this.name = 'ExitAttemptError';
  }
}

/**
 * Prevents extensions from ending the process. Their calls of `process.exit` and `process.abort` are rejected. Errors that
 * they leave uncaught (in a timer, in an unawaited promise) are reported and go no further.
 *
 * The asynchronous context tells which extension's code is running. That costs a little with every promise, so it starts
 * with the first external extension.
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
      (id, what) => blame(id, `it has ${what}`, new Error('more are rejected')),
    );
  }

  /** Calls an extension's code. */
  enter<T>(extensionId: string, call: () => T): T {
    this.#begin();
    return this.#context.run(extensionId, call);
  }

  /** Closes the connections and timers that an extension has left open. */
  release(extensionId: string): void {
    this.#resources.release(extensionId);
  }

  /** Restores the original functions. */
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
      const error = new ExitAttemptError(what);
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
        // Already reported when it was rejected.
        if (!(error instanceof ExitAttemptError)) this.#blame(id, 'uncaught error', error);
        return;
      }
      // Other listeners handle it. Without any, do what Node does.
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
