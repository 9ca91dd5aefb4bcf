import { DeadlineExceededError, type AppendResult as Answer } from '@eventstore/db-client';
import { NotWrittenError } from '../connecting/client-errors.ts';

/** The stream to which an append was sent. */
interface SentOn {
  /** Notes that nobody waits for the append's response any longer. */
  abandon(append: BatchedAppend): void;
}

/** An append that waits to be sent, or for its response. It settles once; later results are ignored. */
export class BatchedAppend {
  /** The response names this id. */
  readonly id: string;
  readonly stream: string;
  readonly request: Buffer;
  readonly answer: Promise<Answer>;
  readonly #timer: NodeJS.Timeout;
  #sentOn: SentOn | undefined;
  #isSettled = false;
  #resolve: (answer: Answer) => void = () => undefined;
  #reject: (error: unknown) => void = () => undefined;

  /** @param deadlineMs milliseconds after which it fails without a response */
  constructor(id: string, stream: string, request: Buffer, deadlineMs: number) {
    this.id = id;
    this.stream = stream;
    this.request = request;
    this.answer = new Promise((resolve, reject) => {
      this.#resolve = resolve;
      this.#reject = reject;
    });
    this.#timer = setTimeout(() => this.#expire(`${Math.round(deadlineMs)} ms`), deadlineMs);
  }

  get isSettled(): boolean {
    return this.#isSettled;
  }

  /** Notes that it was sent. From now on, its outcome is unknown without a response. */
  sent(on: SentOn): void {
    this.#sentOn = on;
  }

  succeed(answer: Answer): void {
    this.#settle();
    this.#resolve(answer);
  }

  fail(error: unknown): void {
    this.#settle();
    this.#reject(error);
  }

  #expire(after: string): void {
    this.fail(
      this.#sentOn === undefined
        ? new NotWrittenError(`not sent within ${after}`)
        : new DeadlineExceededError(undefined, `no answer within ${after}`),
    );
    this.#sentOn?.abandon(this);
  }

  #settle(): void {
    clearTimeout(this.#timer);
    this.#isSettled = true;
  }
}
