import { expect } from 'chai';
import type { ReceivedResponse } from '../../support/api-client.ts';
import { comparable, leaksIn } from './observing.ts';
import { plans } from './planned-attempts.ts';
import type { Pair } from './resident.ts';

/**
 * Lists and metrics of the process that change by themselves, or with the neighbour's own reads.
 */
const changing = new Set([
  ...['GET /health', 'GET /health/ready', 'GET /health/live', 'GET /ext/observability/metrics'],
  ...['GET /ext/status', 'GET /ext/{extension_id}/health', 'GET /projections'],
  ...['GET /audit', 'GET /streams', 'GET /events/export'],
]);

/** Tests that lists and statistics stay the same whatever somebody else does. */
export function itFindsNothingInLists(pair: () => Pair): void {
  const lists = plans.flatMap(({ operation, list, isLive }) =>
    list === null || isLive ? [] : [{ operation, list }],
  );

  describe('after that agent has created more of each kind', () => {
    const earlier = new Map<string, string>();
    let marks: ReadonlySet<string>;
    const read = (path: string): Promise<ReceivedResponse> => pair().me.owner.client.get(path);

    before(async function () {
      this.timeout(120_000);
      const { place, other } = pair();
      for (const { operation, list } of lists) earlier.set(operation, comparable(await read(list)));
      const more = await place.furnish(other.owner, other.namespace);
      // The neighbour's own earlier requests are in its audit and tasks.
      marks = more.marks;
    });

    for (const { operation, list } of lists) {
      it(`sees nothing new in ${operation}`, async () => {
        const answer = await read(list);
        expect(leaksIn(answer.text, marks), answer.text.slice(0, 2000)).to.deep.equal([]);
        if (changing.has(operation)) return;
        expect(comparable(answer)).to.equal(earlier.get(operation));
      });
    }
  });
}
