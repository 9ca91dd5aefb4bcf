import type { ServerProblem, ServerProblemKind } from '../../domain/server-problem.ts';
import type { Telemetry } from '../../observability/telemetry.ts';
import { withTimeout } from '../waiting.ts';
import type { ServerWords } from './server-words.ts';
import { reachabilityOf, type Address, type Reachability } from './reachability.ts';

/** Milliseconds until a lasting problem is tried for the first time, as a server that starts may refuse its users. */
const FIRST_RETRY = 5_000;

/** Milliseconds between later tries. */
const RETRY_INTERVAL = 30_000;

/** Milliseconds for which the reason of a failed connection counts. */
const LOOK_INTERVAL = 5_000;

/** A problem, and when it may be tried again. */
interface Known {
  readonly problem: ServerProblem;
  /** Steady milliseconds. */
  nextTry: number;
}

/** The operation that stands for all in {@link ServerCondition}'s records. */
const EVERY = '*';

/**
 * Whether a server can be used, and why not, as its adapter's calls show. Reports each problem once, and keeps calls from
 * a server that would reject them: one that cannot recover by itself is tried every 30 s.
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
  /** Counts successes, so that a look that began before the last one says nothing. */
  #successes = 0;

  /**
   * @param addresses of the server's hosts, asked when a connection has failed
   * @param now steady milliseconds
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
  get lasting(): ServerProblem | null {
    for (const { problem } of this.#known.values()) if (problem.lasting) return problem;
    return null;
  }

  /**
   * Call before an operation: the problem to fail with at once, as the operation would fail again and is not due for a
   * try. null: go ahead.
   */
  blocking(operation = EVERY): ServerProblem | null {
    if (this.#known.size === 0) return null;
    for (const key of [EVERY, operation]) {
      const known = this.#known.get(key);
      if (known?.problem.lasting === true && this.#now() < known.nextTry) return known.problem;
    }
    return null;
  }

  /** An operation was done. */
  worked(operation: string): void {
    this.#successes += 1;
    if (this.#known.size === 0) return;
    for (const key of [EVERY, operation]) this.#forget(key);
    this.#found = undefined;
    this.#lookedAt = Number.NEGATIVE_INFINITY;
  }

  /** Ends what is under way. The adapter is closing. */
  async close(): Promise<void> {
    this.#closing.abort();
    await this.#looking;
  }

  /** The server refused the user. @param operation default: all, as the user could not sign in */
  rejected(cause: unknown, operation = EVERY): ServerProblem {
    return this.#note(operation, this.#words.problem('user_rejected', { cause }));
  }

  /** The server refused an operation for want of rights. */
  forbidden(operation: string, cause: unknown): ServerProblem {
    return this.#note(
      operation,
      this.#words.problem('rights_missing', { cause, detail: operation }),
    );
  }

  /** The members of the replica set or cluster answer, and none leads. */
  leaderless(cause: unknown): ServerProblem {
    const kind = this.#words.leaderless;
    return this.#note(EVERY, this.#words.problem(kind, { cause }));
  }

  /** A connection failed, or an answer did not come. Begins to find out why, which {@link unreachable} then knows. */
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
   * An operation failed because the server could not be reached or did not answer.
   * @param kind if the error says it
   * @param limitMs how long to wait for the reason
   */
  async unreachable(
    cause: unknown,
    limitMs: number,
    kind?: ServerProblemKind,
  ): Promise<ServerProblem> {
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
    // Another operation was answered meanwhile, or the adapter is closing.
    if (before !== this.#successes || this.#closing.signal.aborted) return problem;
    // A reason found later is the one to report.
    if (kind === undefined && found === undefined && this.#looking !== undefined) return problem;
    return this.#note(EVERY, problem);
  }

  #note(key: string, problem: ServerProblem): ServerProblem {
    const known = this.#known.get(key);
    const now = this.#now();
    const isSame = known?.problem.kind === problem.kind;
    const former = isSame ? undefined : known?.problem;
    // The first one's words stay, as details differ.
    const shown = isSame ? known.problem : problem;
    if (!isSame) this.#known.set(key, { problem, nextTry: now + FIRST_RETRY });
    // A call that was under way before the problem was known is not a try.
    else if (now >= known.nextTry) known.nextTry = now + RETRY_INTERVAL;
    this.#telemetry.failures.unusable(shown, former);
    return shown;
  }

  /** The problem is over, unless other operations still have it. */
  #forget(key: string): void {
    const known = this.#known.get(key);
    if (known === undefined) return;
    this.#known.delete(key);
    const { message } = known.problem;
    for (const { problem } of this.#known.values()) if (problem.message === message) return;
    this.#telemetry.failures.usable(known.problem);
  }

  /** Why no host can be used: the problem of the first that has one, unless another host answers. */
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
