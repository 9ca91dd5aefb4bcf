import { expect } from 'chai';
import fc from 'fast-check';
import { FairQueue, type Party } from '../../../scheduler/fairness/fair-queue.ts';

interface Item extends Party {
  readonly priority: number;
  readonly turn: number;
  isGone?: boolean;
}

let turns = 0;

const item = (agent: string, priority = 5, namespace = 'default'): Item => {
  turns += 1;
  return { agent, namespace, priority, turn: turns };
};

const queueOf = (weights: Readonly<Record<string, number>> = {}): FairQueue<Item> =>
  new FairQueue<Item>({
    before: (a, b) => (a.priority === b.priority ? a.turn < b.turn : a.priority < b.priority),
    partyOf: (each) => each,
    isLive: ({ isGone }) => isGone !== true,
    weightOf: (namespace) => weights[namespace] ?? 1,
  });

/** Takes items until no more may be taken. */
function drained(queue: FairQueue<Item>, most = Infinity): readonly Item[] {
  const taken: Item[] = [];
  while (taken.length < most) {
    const next = queue.pop();
    if (next === undefined) break;
    taken.push(next);
  }
  return taken;
}

const agentsOf = (items: readonly Item[]): string => items.map(({ agent }) => agent).join('');

function times(count: number, make: () => Item): readonly Item[] {
  return Array.from({ length: count }, make);
}

describe('a fair queue', () => {
  it('gives each agent a turn, regardless of who was first', () => {
    const queue = queueOf();
    for (const each of [...times(4, () => item('a')), ...times(2, () => item('b')), item('c')]) {
      queue.push(each);
    }
    expect(agentsOf(drained(queue))).to.equal('abcabaa');
  });

  it('gives an agent its turn after one item of another agent with 10,000', () => {
    const queue = queueOf();
    for (const each of times(10_000, () => item('a', 1))) queue.push(each);
    drained(queue, 100);
    queue.push(item('b', 9));
    expect(agentsOf(drained(queue, 2))).to.include('b');
  });

  it('orders the items of one agent by priority, then by age', () => {
    const queue = queueOf();
    const [old, urgent, young] = [item('a', 5), item('a', 1), item('a', 5)];
    for (const each of [old, urgent, young, item('b', 9)]) queue.push(each);
    const own = drained(queue).filter(({ agent }) => agent === 'a');
    expect(own).to.deep.equal([urgent, old, young]);
  });

  it('shares turns by the weights of namespaces, however many agents each has', () => {
    const queue = queueOf({ one: 3, two: 1 });
    for (const agent of ['a', 'b', 'c', 'd', 'e']) {
      for (const each of times(100, () => item(agent, 5, 'two'))) queue.push(each);
    }
    for (const each of times(500, () => item('z', 5, 'one'))) queue.push(each);
    const taken = drained(queue, 400);
    expect(taken.filter(({ namespace }) => namespace === 'one')).to.have.lengthOf(300);
    for (const agent of ['a', 'b', 'c', 'd', 'e']) {
      expect(taken.filter((each) => each.agent === agent)).to.have.lengthOf(20);
    }
  });

  it('gives a namespace no credit for the time when it has nothing to do', () => {
    const queue = queueOf({ one: 10 });
    queue.push(item('a', 5, 'one'));
    for (const each of times(50, () => item('z', 5, 'two'))) queue.push(each);
    drained(queue, 20);
    for (const each of times(50, () => item('a', 5, 'one'))) queue.push(each);
    const [first = '', ...rest] = agentsOf(drained(queue, 24)).split('z');
    expect(Math.max(first.length, ...rest.map((some) => some.length))).to.equal(10);
  });

  it('skips items that no longer wait, without using a turn', () => {
    const queue = queueOf();
    const gone = times(5, () => item('a'));
    for (const each of [...gone, item('a'), item('b'), item('b')]) queue.push(each);
    for (const each of gone) each.isGone = true;
    expect(agentsOf(drained(queue))).to.equal('abb');
    expect(queue.size).to.equal(0);
  });

  it('gives a held agent no turn before its release', () => {
    const queue = queueOf();
    for (const each of [item('a'), item('a'), item('b')]) queue.push(each);
    expect(queue.peek()?.agent).to.equal('a');
    queue.hold('agent');
    expect(agentsOf(drained(queue))).to.equal('b');
    expect(queue.sizeOf('a')).to.equal(2);
    queue.release({ namespace: 'default', agent: 'a' });
    expect(agentsOf(drained(queue))).to.equal('aa');
  });

  it('gives a held namespace no turn before its release', () => {
    const queue = queueOf();
    const other = item('c', 5, 'other');
    for (const each of [item('a'), item('b'), other]) queue.push(each);
    queue.peek();
    queue.hold('namespace');
    queue.push(item('d'));
    expect(drained(queue)).to.deep.equal([other]);
    queue.release({ namespace: 'default', agent: 'b' });
    expect(agentsOf(drained(queue))).to.equal('abd');
  });

  it('checks a held agent again if its new item goes first', () => {
    const queue = queueOf();
    queue.push(item('a'));
    queue.peek();
    queue.hold('agent');
    queue.push(item('a', 9));
    expect(queue.peek()).to.equal(undefined);
    const urgent = item('a', 1);
    queue.push(urgent);
    expect(queue.peek()).to.equal(urgent);
  });

  it('loses nothing, and never lets an agent wait for more than one turn of each other', () => {
    const step = fc.record({
      agent: fc.constantFrom('a', 'b', 'c', 'd'),
      action: fc.constantFrom('push', 'push', 'pop', 'hold', 'release'),
    });
    const law = fc.property(fc.array(step, { maxLength: 120 }), (steps) => {
      const queue = queueOf();
      let waiting = 0;
      for (const { agent, action } of steps) {
        if (action === 'push') {
          queue.push(item(agent));
          waiting += 1;
        } else if (action === 'pop') waiting -= queue.pop() === undefined ? 0 : 1;
        else if (action === 'release') queue.release({ namespace: 'default', agent });
        else if (queue.peek() !== undefined) queue.hold('agent');
      }
      expect(queue.size).to.equal(waiting);
      for (const agent of ['a', 'b', 'c', 'd']) queue.release({ namespace: 'default', agent });
      const order = drained(queue);
      expect(order).to.have.lengthOf(waiting);
      for (const [index, { agent }] of order.entries()) {
        const next = order.findIndex((each, at) => at > index && each.agent === agent);
        const between = order.slice(index + 1, next === -1 ? index + 1 : next);
        expect(new Set(between.map((each) => each.agent)).size).to.equal(between.length);
      }
    });
    fc.assert(law);
  });
});
