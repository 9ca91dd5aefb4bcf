import type { UnusableServerError, ServerProblemKind } from '../../domain/server-problem.ts';
import type { Telemetry } from '../../observability/telemetry.ts';
import { withTimeout } from '../waiting.ts';
import type { ServerWords } from './server-words.ts';
import { reachabilityOf, type Address, type Reachability } from './reachability.ts';

/** Milliseconds before the first retry after a lasting problem, as a starting server may reject its users. */
const FIRST_RETRY = 5_000;

/** Milliseconds between later retries. */
const RETRY_INTERVAL = 30_000;

/** How long the reason of a failed connection stays valid, in milliseconds. */
const LOOK_INTERVAL = 5_000;

/** A problem, and when a retry is allowed. */
interface Known {
  readonly problem: UnusableServerError;
  /** Milliseconds of the monotonic clock. */
  nextTry: number;
}

/** The name that {@link ServerCondition} uses for all operations. */
const EVERY = '*';

/**
 * Whether a server can be used, and if not, why, judging by its adapter's calls. Reports each problem once, and blocks
 * calls that the server would reject. A server that cannot recover by itself is retried every 30 s.
 */
export class ServerCondition {
  readonly #words: ServerWords;
  readonly #telemetry: Telemetry;
  readonly #addresses: () => readonly Address[];
  readonly #now: () => number;
  readonly #known = new Map<string, Known>();
  #looking: Promise<void> | undefined;
  #lookedAt = Number.NEGATIVE_INFINITY;
  #found: Reachability | undefined;
  readonly #closing = new AbortController();
  /** Counts successes, so that the result of a check that started before the last success is ignored. */
  #successes = 0;

  /**
   * @param addresses of the server's hosts, read when a connection has failed
   * @param now milliseconds of the monotonic clock
   */
  constructor(
    words: ServerWords,
    telemetry: Telemetry,
    addresses: () => readonly Address[],
    now: () => number = () => performance.now(),
  ) {
    this.#words = words;
    this.#telemetry = telemetry;
    this.#addresses = addresses;
    this.#now = now;
  }

  /** A problem that cannot recover by itself; null for none known. */
  get lasting(): UnusableServerError | null {
    for (const { problem } of this.#known.values()) if (problem.lasting) return problem;
    return null;
  }

  /**
   * Call before an operation. Returns the problem to fail with at once, because the operation would fail again and no
   * retry is due. null: go ahead.
   */
  blocking(operation = EVERY): UnusableServerError | null {
    if (this.#known.size === 0) return null;
    for (const key of [EVERY, operation]) {
      const known = this.#known.get(key);
      if (known?.problem.lasting === true && this.#now() < known.nextTry) return known.problem;
    }
    return null;
  }

  /** Notes that an operation has succeeded. */
  worked(operation: string): void {
    this.#successes += 1;
    if (this.#known.size === 0) return;
    for (const key of [EVERY, operation]) this.#forget(key);
    this.#found = undefined;
    this.#lookedAt = Number.NEGATIVE_INFINITY;
  }

  /** Ends checks in progress, because the adapter is closing. */
  async close(): Promise<void> {
    this.#closing.abort();
    await this.#looking;
  }

  /** Notes that the server rejected the user. @param operation default: all, as the user could not sign in */
  rejected(cause: unknown, operation = EVERY): UnusableServerError {
    return this.#note(operation, this.#words.problem('user_rejected', { cause }));
  }

  /** Notes that the server rejected an operation because the user lacks a right. */
  forbidden(operation: string, cause: unknown): UnusableServerError {
    return this.#note(
      operation,
      this.#words.problem('rights_missing', { cause, detail: operation }),
    );
  }

  /** Notes that the members of the replica set or cluster respond but none leads. */
  leaderless(cause: unknown): UnusableServerError {
    const kind = this.#words.leaderless;
    return this.#note(EVERY, this.#words.problem(kind, { cause }));
  }

  /** Notes that a connection failed or a response did not arrive. Starts to find out why, for {@link unreachable}. */
  suspect(): void {
    const isRecent = this.#now() - this.#lookedAt < LOOK_INTERVAL;
    if (isRecent || this.#closing.signal.aborted) return;
    this.#lookedAt = this.#now();
    const before = this.#successes;
    const looking = this.#look().then((found) => {
      if (before === this.#successes) this.#found = found;
    });
    this.#looking = looking;
    void looking.finally(() => {
      if (this.#looking === looking) this.#looking = undefined;
    });
  }

  /**
   * Notes that an operation failed because the server could not be reached or did not respond.
   * @param kind if the error states it
   * @param limitMs how long to wait for the reason
   */
  async unreachable(
    cause: unknown,
    limitMs: number,
    kind?: ServerProblemKind,
  ): Promise<UnusableServerError> {
    const before = this.#successes;
    if (kind === undefined) {
      this.suspect();
      await withTimeout(this.#looking ?? Promise.resolve(), limitMs);
    }
    const found = this.#found;
    const answers = found === undefined || found.kind === 'answers';
    const problem = this.#words.problem(kind ?? (answers ? 'no_answer' : found.kind), {
      cause,
      detail: answers ? wordsOf(cause) : found.detail,
    });
    // Another operation has succeeded in the meantime, or the adapter is closing.
    if (before !== this.#successes || this.#closing.signal.aborted) return problem;
    // If a later check finds a reason, that one will be reported.
    if (kind === undefined && found === undefined && this.#looking !== undefined) return problem;
    return this.#note(EVERY, problem);
  }

  #note(key: string, problem: UnusableServerError): UnusableServerError {
    const known = this.#known.get(key);
    const now = this.#now();
    const isSame = known?.problem.kind === problem.kind;
    const former = isSame ? undefined : known?.problem;
    // The first message stays, as details differ.
    const shown = isSame ? known.problem : problem;
    if (!isSame) this.#known.set(key, { problem, nextTry: now + FIRST_RETRY });
    // A call that started before the problem was known does not count as a retry.
    else if (now >= known.nextTry) known.nextTry = now + RETRY_INTERVAL;
    this.#telemetry.failures.unusable(shown, former);
    return shown;
  }

  /** Notes that the problem is over, unless other operations still have it. */
  #forget(key: string): void {
    const known = this.#known.get(key);
    if (known === undefined) return;
    this.#known.delete(key);
    const { message } = known.problem;
    for (const { problem } of this.#known.values()) if (problem.message === message) return;
    this.#telemetry.failures.usable(known.problem);
  }

  /** Why no host can be used: the problem of the first host with one, unless another host responds. */
  async #look(): Promise<Reachability> {
    const found = await Promise.all(
      this.#addresses().map((each) => reachabilityOf(each, this.#closing.signal)),
    );
    const [first = { kind: 'no_answer', detail: 'no address' } as const] = found;
    if (found.every(({ kind }) => kind !== 'answers')) return first;
    if (found.length === 1) return { kind: 'answers', detail: '' };
    return { kind: this.#words.leaderless, detail: '' };
  }
}

const wordsOf = (error: unknown): string =>
  (error instanceof Error ? error.message : String(error)).trim();
