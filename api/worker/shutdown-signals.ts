const signals = ['SIGTERM', 'SIGINT'] as const;

/** Calls a function at the first SIGTERM or SIGINT. The next signal ends the process, as it does by default. */
export class ShutdownSignals {
  readonly #onSignal: (signal: NodeJS.Signals) => Promise<void>;

  /** The function must not reject. */
  constructor(onSignal: (signal: NodeJS.Signals) => Promise<void>) {
    this.#onSignal = onSignal;
  }

  listen(): void {
    for (const each of signals) process.on(each, this.#receive);
  }

  ignore(): void {
    for (const each of signals) process.off(each, this.#receive);
  }

  readonly #receive = (signal: NodeJS.Signals): void => {
    this.ignore();
    void this.#onSignal(signal);
  };
}
