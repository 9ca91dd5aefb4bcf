import { expect } from 'chai';
import {
  EventStoreError,
  type EventStore,
  type Position,
  type RecordedEvent,
} from '../../../domain/event-store.ts';
import type { EndListener, LogEngine, LogEntry, LogPage } from '../../../domain/log-engine.ts';
import { silent } from '../../../observability/telemetry.ts';
import { followedLog } from '../../../stores/following/followed-log.ts';
import { LazyEntry } from '../../../stores/following/lazy-entry.ts';
import { Follower, rejected } from '../../contracts/event-store-subject.ts';
import { Signal, deferred, eventually } from '../../support/signals.ts';
import { settle } from '../../support/virtual-clock.ts';

const at = (position: number): Position => String(position).padStart(16, '0');

/** An engine whose log a test writes, and whose end moves only when the test says so. */
class ScriptedEngine {
  readonly #entries: LogEntry[] = [];
  readonly reads: Position[] = [];
  readonly decoded: Position[] = [];
  /** The listeners that have followed its end. */
  readonly followed = new Signal<EndListener>('following the end');
  /** The head that a lookup finds; default: the end of the log. */
  head = async (): Promise<Position> => this.end;
  /** Makes `followEnd` fail. */
  fail: (error: Error) => void = () => {};

  get end(): Position {
    return this.#entries.at(-1)?.position ?? '';
  }

  /** Adds entries of 100 bytes without notifying anyone. */
  write(count: number, stream = 'run-1'): readonly LogEntry[] {
    const first = this.#entries.length + 1;
    const added = Array.from({ length: count }, (_, n) => {
      const position = at(first + n);
      return new LazyEntry(stream, position, 100, () => {
        this.decoded.push(position);
        return { id: position, stream, position } as unknown as RecordedEvent;
      });
    });
    this.#entries.push(...added);
    return added;
  }

  /** Adds entries, and notifies the follower. */
  grow(count: number, stream = 'run-1'): void {
    const entries = this.write(count, stream);
    this.followed.values.at(-1)?.grows({ entries, upTo: this.end });
  }

  readonly #readPage = async ({ after }: { readonly after: Position }): Promise<LogPage> => {
    this.reads.push(after);
    const entries = this.#entries.filter(({ position }) => position > after).slice(0, 10);
    const upTo = entries.at(-1)?.position ?? after;
    return { entries, upTo, isLast: upTo >= this.end, prefixes: undefined };
  };

  readonly engine = {
    readPage: this.#readPage,
    head: () => this.head(),
    isPosition: (text: string) => /^\d{16}$/.test(text),
    followEnd: (listener: EndListener, signal: AbortSignal) =>
      new Promise<void>((resolve, reject) => {
        this.fail = reject;
        signal.addEventListener('abort', () => resolve());
        this.followed.send(listener);
        listener.begins(this.end);
      }),
    close: async () => {},
  } as unknown as LogEngine;
}

describe("the log's follower", () => {
  let script: ScriptedEngine;
  let log: EventStore;
  const followers: Follower[] = [];
  const follow = (after: Position, prefixes?: readonly string[]): Follower => {
    const follower = new Follower(log, after, prefixes);
    followers.push(follower);
    return follower;
  };
  beforeEach(() => {
    script = new ScriptedEngine();
    log = followedLog(script.engine, silent, { kept: 500, most: 2_000, past: 2_000 });
  });
  afterEach(async () => {
    await Promise.all(followers.splice(0).map((each) => each.end()));
    await log.close();
  });
  const positionsOf = (events: readonly RecordedEvent[]): number[] =>
    events.map(({ position }) => Number(position));
  const upTo = (count: number): number[] => Array.from({ length: count }, (_, n) => n + 1);

  it('reads an old log page by page, then the window', async () => {
    script.write(25);
    const follower = follow('');
    await follower.caughtUp(at(25));
    expect(script.reads).to.deep.equal(['', at(10), at(20)]);
    script.grow(3);
    expect(positionsOf(await follower.count(28))).to.deep.equal(upTo(28));
    expect(script.reads).to.have.lengthOf(3);
  });

  it('follows the end once, and decodes each wanted entry once', async () => {
    const all = ['run-', 'run-', 'run-1'].map((prefix) => follow('', [prefix]));
    await Promise.all(all.map((each) => each.caughtUp('')));
    script.grow(2, 'task-1');
    script.grow(2);
    for (const each of all) expect(positionsOf(await each.count(2))).to.deep.equal([3, 4]);
    expect(script.followed.values).to.have.lengthOf(1);
    expect(script.decoded).to.deep.equal([at(3), at(4)]);
  });

  it('does not report that it has caught up before it has delivered all events from before its start', async () => {
    await follow('').caughtUp('');
    // Written by another process, without a notification to this one.
    script.write(2);
    const lookup = deferred<Position>();
    script.head = () => lookup.promise;
    const follower = follow('');
    const message = follower.next();
    lookup.resolve(at(2));
    await settle();
    script.followed.values.at(-1)?.grows({ entries: [], upTo: at(2) });
    const first = await message;
    expect(first).to.deep.equal({ kind: 'caught-up', position: at(2) });
  });

  it('lets a slow follower read entries that the window no longer holds', async () => {
    const [slow, quick] = [follow(''), follow('')];
    await Promise.all([slow.caughtUp(''), quick.caughtUp('')]);
    for (let n = 1; n <= 50; n += 1) {
      script.grow(1);
      await quick.count(n);
    }
    const { length } = script.reads;
    expect(positionsOf(await slow.count(50))).to.deep.equal(upTo(50));
    // The window keeps 500 bytes once the slow follower has left it, which then reads pages of ten events.
    expect(script.reads.length - length).to.equal(5);
  });

  it('continues without loss after the end could not be followed', async () => {
    const follower = follow('');
    await follower.caughtUp('');
    script.grow(2);
    await follower.count(2);
    script.fail(new Error('lost'));
    script.write(3);
    await eventually(() => script.followed.values.length === 2);
    await follower.count(5);
    script.grow(1);
    expect(positionsOf(await follower.count(6))).to.deep.equal(upTo(6));
  });

  it('lets its followers read the log themselves while the end cannot be followed', async () => {
    const follower = follow('');
    await follower.caughtUp('');
    const followEnd = (_: EndListener, signal: AbortSignal): Promise<void> =>
      new Promise((resolve) => signal.addEventListener('abort', () => resolve()));
    Object.assign(script.engine, { followEnd });
    script.fail(new Error('lost'));
    script.write(3);
    expect(positionsOf(await follower.count(3))).to.deep.equal(upTo(3));
  });

  it('delivers each event once to two followers that read the old log from different places', async () => {
    script.write(40);
    const [one, other] = [follow(''), follow(at(5))];
    const both = await Promise.all([one.count(40), other.count(35)]);
    expect(positionsOf(both[0])).to.deep.equal(upTo(40));
    expect(positionsOf(both[1])).to.deep.equal(upTo(40).slice(5));
    // Separately, they would read nine pages.
    expect(script.reads.length).to.be.below(9);
  });

  it('retries pages that could not be read', async () => {
    script.write(5);
    const { readPage } = script.engine;
    let failures = 2;
    Object.assign(script.engine, {
      readPage: (part: Parameters<typeof readPage>[0]) => {
        failures -= 1;
        if (failures >= 0) throw new EventStoreError('UNAVAILABLE', 'away');
        return readPage(part);
      },
    });
    expect(positionsOf(await follow('').count(5))).to.deep.equal(upTo(5));
  });

  it('rejects a position of another engine, and everything once it is closed', async () => {
    await rejected('INVALID_EVENT', new Follower(log, 'elsewhere').next());
    const follower = new Follower(log, '');
    await follower.caughtUp('');
    const waiting = rejected('UNAVAILABLE', follower.next());
    await log.close();
    await waiting;
    await rejected('UNAVAILABLE', new Follower(log, '').next());
  });
});
