import { expect } from 'chai';
import type { SubscriptionMessage } from '../../../domain/event-store.ts';
import { Inbox } from '../../../projections/projector/inbox.ts';
import { deferred } from '../../support/signals.ts';
import { settle, VirtualClock } from '../../support/virtual-clock.ts';
import { LogOfTest, request } from '../recorded.ts';

/** A subscription that delivers what the test sends. */
class ScriptedMessages {
  readonly #messages: SubscriptionMessage[] = [];
  #more = deferred();
  #over = false;

  send(...messages: readonly SubscriptionMessage[]): void {
    this.#messages.push(...messages);
    this.#more.resolve();
  }

  end(): void {
    this.#over = true;
    this.#more.resolve();
  }

  async *[Symbol.asyncIterator](): AsyncGenerator<SubscriptionMessage> {
    while (!this.#over) {
      const next = this.#messages.shift();
      if (next !== undefined) {
        yield next;
      } else {
        this.#more = deferred();
        await this.#more.promise;
      }
    }
  }
}

describe("a view's inbox", () => {
  let log: LogOfTest;
  let clock: VirtualClock;
  let messages: ScriptedMessages;
  let inbox: Inbox;

  beforeEach(() => {
    log = new LogOfTest();
    clock = new VirtualClock();
    messages = new ScriptedMessages();
    inbox = new Inbox(messages, clock);
  });
  afterEach(async () => {
    messages.end();
    await inbox.end();
    expect(clock.pending).to.equal(0);
  });

  function events(count: number): SubscriptionMessage {
    const added = Array.from({ length: count }, () => log.add('run-1', 'RunRequested', request()));
    return { kind: 'events', events: added };
  }
  const at = (position: number): string => String(position).padStart(16, '0');

  async function next(patience = 1_000): Promise<string> {
    const batch = await inbox.next(patience);
    if (typeof batch === 'string') return batch;
    const { events: taken, upTo, isLevel } = batch;
    return `${taken.length} up to ${Number(upTo)}${isLevel ? ', level' : ''}`;
  }

  it('delivers events, and says when the view has caught up with the log', async () => {
    messages.send(events(2), { kind: 'caught-up', position: at(9) });
    expect(await next()).to.equal('2 up to 9, level');
    const waiting = next();
    messages.send(events(1));
    expect(await waiting).to.equal('1 up to 3');
  });

  it("returns when the view's patience ends, and loses nothing that arrives afterwards", async () => {
    const waiting = next(25);
    await clock.advance(25);
    expect(await waiting).to.equal('quiet');
    messages.send(events(3));
    expect(await next()).to.equal('3 up to 3');
  });

  it('joins events that arrived while the view was writing', async () => {
    const waiting = next(25);
    await clock.advance(25);
    expect(await waiting).to.equal('quiet');
    messages.send(events(1));
    await settle();
    messages.send(events(2), { kind: 'caught-up', position: at(4) });
    expect(await next()).to.equal('3 up to 4, level');
  });

  it('gathers events until there are enough', async () => {
    messages.send(events(10));
    let isOver = false;
    const enough = inbox
      .gather({ events: 25, patience: 20, quiet: 20 })
      .then(() => (isOver = true));
    messages.send(events(10));
    await settle();
    expect(isOver).to.equal(false);
    messages.send(events(5));
    await enough;
    expect(await next()).to.equal('25 up to 25');
  });

  it('gathers events until the time is over, as long as they arrive', async () => {
    let isOver = false;
    const gathered = inbox
      .gather({ events: 100, patience: 50, quiet: 20 })
      .then(() => (isOver = true));
    for (let time = 0; time < 4; time += 1) {
      messages.send(events(1), { kind: 'caught-up', position: at(time + 1) });
      await clock.advance(12);
    }
    expect(isOver).to.equal(false);
    await clock.advance(2);
    await gathered;
    expect(await next()).to.equal('4 up to 4, level');
  });

  it('stops gathering when no more events arrive', async () => {
    let isOver = false;
    const gathered = inbox
      .gather({ events: 100, patience: 50, quiet: 10 })
      .then(() => (isOver = true));
    for (let time = 0; time < 3; time += 1) {
      await clock.advance(9);
      messages.send(events(1));
      await settle();
    }
    await clock.advance(9);
    expect(isOver).to.equal(false);
    await clock.advance(1);
    await gathered;
    expect(await next()).to.equal('3 up to 3');
  });

  it('reports that the subscription has ended', async () => {
    const waiting = next();
    messages.end();
    expect(await waiting).to.equal('ended');
  });
});
