import { expect } from 'chai';
import { slotWait } from '../../../../api/endpoints/tasks/slot-wait.ts';
import type { JsonObject } from '../../../../domain/json.ts';

const AT = '2026-03-02T09:00:00.000Z';
const owner = { agent: 'ada', namespace: 'default' };

const waitAmong = (...workers: readonly JsonObject[]): Promise<string | null> =>
  slotWait(
    {
      alive: () =>
        Promise.resolve(
          workers.map((slots, n) => ({
            id: `w${n}`,
            about: { roles: ['worker'], slots },
            remaining: 1000,
          })),
        ),
    },
    owner,
  );
const free = { slots: 8, taken: 3, full_since: null, holders: [] };
const full = { slots: 8, taken: 8, full_since: AT, holders: [] };
const limited = (scope: string, id: string, taken = 2) => ({
  ...free,
  limits_reached: [{ scope, id, taken, limit: taken }],
});

describe('the resource that a ready run waits for', () => {
  it('is a slot of its agent or namespace, if that limit is reached in every process', async () => {
    expect(await waitAmong(limited('agent', 'ada', 8))).to.equal(
      'a slot of its agent: 8 of 8 in use',
    );
    expect(await waitAmong(limited('agent', 'ada'), limited('agent', 'ada'))).to.equal(
      'a slot of its agent: 4 of 4 in use',
    );
    expect(await waitAmong(limited('namespace', 'default', 5))).to.equal(
      'a slot of its namespace: 5 of 5 in use',
    );
  });

  it('is any slot if all are taken', async () => {
    expect(await waitAmong(full)).to.equal('a slot: 8 of 8 in use');
    expect(await waitAmong(full, limited('agent', 'ada'))).to.equal(
      'a slot: 8 of 8 in use; a slot of its agent: 2 of 2 in use',
    );
  });

  it('is nothing if a process has, or may have, a slot for it', async () => {
    expect(await waitAmong()).to.equal(null);
    expect(await waitAmong(free, full)).to.equal(null);
    expect(await waitAmong(limited('agent', 'bob'))).to.equal(null);
    expect(await waitAmong(full, {})).to.equal(null);
  });
});
