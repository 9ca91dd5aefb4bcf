import { expect } from 'chai';
import type { RecordedEvent } from '../../domain/event-store.ts';
import { Ledger } from './ledger.ts';
import { faultsOfSharing } from './sharing-checks.ts';

const task = {
  id: 't',
  name: 'shy',
  attempts: 1,
  createdAt: 0,
  body: {},
  shares: { kind: 'overlap', policy: 'skip' } as const,
};

/** An event at a position, with the seconds at which it occurred and at which its commit started. */
function eventAt(position: number, begun: number, recorded: number, rest: object): RecordedEvent {
  const at = (seconds: number): string => new Date(seconds * 1000).toISOString();
  return {
    id: `e${position}`,
    revision: 0,
    position: String(position),
    createdAt: at(recorded),
    metadata: { occurredAt: at(begun) },
    ...rest,
  } as unknown as RecordedEvent;
}

const asked = { stream: 'run-a', type: 'RunRequested', data: { task_id: 't' } };
const ended = { stream: 'run-a', type: 'RunSucceeded', data: {} };
const fired = { stream: 'fires-t', type: 'Fired', data: { run_id: 'b' } };
const gaveWay = {
  stream: 'run-b',
  type: 'RunSkipped',
  data: { task_id: 't', reason: 'overlap', because_of: 'a' },
};

function faultsOf(...events: RecordedEvent[]): readonly string[] {
  return faultsOfSharing(new Ledger(events), [task]);
}

describe('the check of the run because of which another was skipped', () => {
  const fault = 'shy: b was skipped because of a, which had ended';

  it('finds a run that had ended before the fire', () => {
    const events = [eventAt(1, 1, 1, asked), eventAt(2, 2, 2, ended), eventAt(3, 2, 2, fired)];
    expect(faultsOf(...events, eventAt(4, 2, 2, gaveWay))).to.deep.equal([fault]);
  });

  it('finds a run that had ended long before the skipped run was requested', () => {
    const events = [eventAt(1, 1, 1, asked), eventAt(2, 2, 2, ended)];
    expect(faultsOf(...events, eventAt(3, 14, 14, gaveWay))).to.deep.equal([fault]);
  });

  it('accepts a run that ended between the fire and the record, even if writing its end began earlier', () => {
    const events = [eventAt(1, 1, 1, asked), eventAt(2, 3, 3, fired), eventAt(3, 2, 3, ended)];
    expect(faultsOf(...events, eventAt(4, 3, 3, gaveWay))).to.deep.equal([]);
  });

  it('finds a run that was skipped because of a missing run', () => {
    expect(faultsOf(eventAt(1, 1, 1, gaveWay))).to.deep.equal([
      'shy: b was skipped because of a run that does not exist',
    ]);
  });
});
