import { expect } from 'chai';
import { givingWay } from '../../../app/projecting/giving-way.ts';
import { BEGINNING, type EventStore } from '../../../domain/event-store.ts';
import { settle, VirtualClock } from '../../support/virtual-clock.ts';

describe('giving way while views are made', () => {
  /** A log in which nothing is. */
  const silentLog = {
    subscribe: ({ signal }: { signal: AbortSignal }) => ({
      async *[Symbol.asyncIterator]() {
        yield { kind: 'caught-up', position: BEGINNING };
        await new Promise((resolve) => signal.addEventListener('abort', resolve));
      },
    }),
  } as unknown as EventStore;

  const world = () => {
    const said: string[] = [];
    const clock = new VirtualClock();
    const priority = { giveWay: () => said.push('gives way'), takeBack: () => said.push('back') };
    const store = givingWay(silentLog, priority, clock);
    const subscribe = (ahead: boolean) => {
      const end = new AbortController();
      const { signal } = end;
      const drained = (async () => {
        for await (const message of store.subscribe({ after: BEGINNING, ahead, signal }))
          void message;
      })();
      return {
        async end() {
          end.abort();
          await drained;
        },
      };
    };
    return { said, clock, subscribe };
  };

  it('gives way while one goes through the log for longer than a moment, and is back when the last has ended', async () => {
    const { said, clock, subscribe } = world();
    const first = subscribe(true);
    await settle();
    await clock.advance(1500);
    const second = subscribe(true);
    await settle();
    await clock.advance(1500);
    expect(said).to.deep.equal(['gives way']);
    await first.end();
    expect(said).to.deep.equal(['gives way']);
    await second.end();
    expect(said).to.deep.equal(['gives way', 'back']);
    expect(clock.pending).to.equal(0);
  });

  it('takes no notice of what is over in a moment, nor of who follows the log', async () => {
    const { said, clock, subscribe } = world();
    const short = subscribe(true);
    const following = subscribe(false);
    await settle();
    await clock.advance(900);
    await short.end();
    await clock.advance(5000);
    await following.end();
    expect(said).to.deep.equal([]);
    expect(clock.pending).to.equal(0);
  });
});
