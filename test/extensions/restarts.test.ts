import { expect } from 'chai';
import { eventually } from '../support/signals.ts';
import { manifestOf, reached, useHosting } from './hosting.ts';

describe('the background work of an extension', () => {
  const hosting = useHosting();

  /** Calls a function that the extension has stored in `reached`. */
  const call = (name: string): Promise<void> => (reached[name] as () => Promise<void>)();

  async function start(module: string, capabilities: readonly string[]): Promise<void> {
    await hosting().write('busy', manifestOf('busy', { capabilities }), module);
    await hosting().start();
  }

  it('does not restart under its name before a stopped task has ended', async () => {
    const module = `export function setup({ background }) {
      reached.runs = [];
      const work = () => new Promise((end) => reached.runs.push(end));
      reached.start = () => background.startTask('poll', work);
      reached.stop = () => background.stopTask('poll');
      reached.states = () => background.listTasks().map(({ state }) => state);
    }`;
    await start(module, ['BACKGROUND_TASKS']);
    const runs = reached['runs'] as (() => void)[];
    await call('start');
    await eventually(() => void expect(runs).to.have.lengthOf(1));
    // It ignores its signal and is abandoned.
    await call('stop');
    await call('start');
    await call('stop');
    await call('start');
    expect(runs).to.have.lengthOf(1);
    expect(call('states')).to.deep.equal(['waiting']);
    runs[0]?.();
    await eventually(() => void expect(runs).to.have.lengthOf(2));
    runs[1]?.();
    await eventually(() => void expect(call('states')).to.deep.equal(['done']));
    expect(runs).to.have.lengthOf(2);
  });

  it('delivers no event to a new subscriber while the previous one handles one', async () => {
    const module = `export async function setup({ events }) {
      reached.had = [];
      const take = ({ data }) => new Promise((end) => reached.had.push({ n: data.n, end }));
      reached.subscribe = () => events.subscribe('orders', take);
      reached.unsubscribe = () => events.unsubscribe('orders');
      await reached.subscribe();
      await events.subscribe('marker', () => { reached.marked = true; });
    }`;
    await start(module, ['EVENTS_SUB']);
    const had = reached['had'] as { n: number; end: () => void }[];
    await hosting().publish('orders', { n: 1 });
    await eventually(() => void expect(had).to.have.lengthOf(1));
    await call('unsubscribe');
    await call('subscribe');
    await hosting().publish('orders', { n: 2 });
    await hosting().publish('marker', {});
    await eventually(() => void expect(reached['marked']).to.equal(true));
    expect(had).to.have.lengthOf(1);
    had[0]?.end();
    await eventually(() => void expect(had.map(({ n }) => n)).to.deep.equal([1, 2]));
    had[1]?.end();
  });
});

describe('a subscription that could not start', () => {
  const hosting = useHosting();

  it('can be subscribed again', async () => {
    const module = `export function setup({ events }) {
      reached.subscribe = () => events.subscribe('orders', ({ data }) => { reached.had = data.n; });
    }`;
    await hosting().write('busy', manifestOf('busy', { capabilities: ['EVENTS_SUB'] }), module);
    await hosting().start();
    const { store } = hosting();
    const head = store.head.bind(store);
    store.head = () => Promise.reject(new Error('the log is unavailable'));
    const subscribe = reached['subscribe'] as () => Promise<void>;
    const thrown = await subscribe().catch((error: unknown) => error);
    expect(thrown).to.be.an('error').with.property('message', 'the log is unavailable');
    store.head = head;
    await subscribe();
    await hosting().publish('orders', { n: 1 });
    await eventually(() => void expect(reached['had']).to.equal(1));
  });

  it('is dropped if it was unsubscribed in the meantime', async () => {
    const module = `export async function setup({ events }) {
      reached.had = [];
      const take = ({ data }) => { reached.had.push(data.n); };
      const begun = events.subscribe('orders', take);
      await events.unsubscribe('orders');
      await begun;
      reached.again = () => events.subscribe('orders', take);
    }`;
    await hosting().write('busy', manifestOf('busy', { capabilities: ['EVENTS_SUB'] }), module);
    await hosting().start();
    await hosting().publish('orders', { n: 1 });
    await (reached['again'] as () => Promise<void>)();
    await hosting().publish('orders', { n: 2 });
    await eventually(() => void expect(reached['had']).to.include(2));
    expect(reached['had']).to.deep.equal([2]);
  });
});
