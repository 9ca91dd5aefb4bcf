import { expect } from 'chai';
import fc from 'fast-check';
import {
  eventId,
  isUuid,
  manualRunId,
  nameBasedId,
  newId,
  scheduledRunId,
  triggeredRunId,
} from '../../domain/ids.ts';
import { idOf, streams } from '../../domain/streams.ts';
import { streamIdOf } from '../../domain/topics/topic.ts';

describe('ids', () => {
  it('derived from names are UUIDs of version 5, the same for the same names', () => {
    const id = nameBasedId('run', 'task');
    expect(isUuid(id)).to.equal(true);
    expect(id[14]).to.equal('5');
    expect('89ab').to.include(id[19] ?? '');
    expect(nameBasedId('run', 'task')).to.equal(id);
    expect(nameBasedId('run', 'task2')).to.not.equal(id);
  });

  it('of runs differ by task, time and trigger', () => {
    const ids = [
      scheduledRunId('t', '2026-01-01T00:00:00.000Z'),
      scheduledRunId('t', '2026-01-01T00:01:00.000Z'),
      scheduledRunId('u', '2026-01-01T00:00:00.000Z'),
      triggeredRunId('t', '2026-01-01T00:00:00.000Z'),
      manualRunId('t', '2026-01-01T00:00:00.000Z'),
    ];
    expect(new Set(ids).size).to.equal(ids.length);
  });

  it('of events differ by command, stream and index', () => {
    const ids = [
      eventId('c', 's', 0),
      eventId('c', 's', 1),
      eventId('c', 't', 0),
      eventId('d', 's', 0),
    ];
    expect(new Set(ids).size).to.equal(4);
    expect(eventId('c', 's', 0)).to.equal(ids[0]);
  });

  it('that are new ascend and are UUIDs of version 7, even when the clock goes back', () => {
    fc.assert(
      fc.property(
        fc.array(fc.integer({ min: -5_000, max: 5_000 }), { maxLength: 200 }),
        (steps) => {
          let now = 1_800_000_000_000;
          let last = '';
          for (const step of steps) {
            now += step;
            const id = newId(now);
            expect(isUuid(id)).to.equal(true);
            expect(id[14]).to.equal('7');
            expect('89ab').to.include(id[19] ?? '');
            expect(id > last).to.equal(true);
            last = id;
          }
        },
      ),
      { numRuns: 50 },
    );
  });

  it('that are new ascend even when thousands are created in a millisecond', () => {
    const ids = Array.from({ length: 20_000 }, () => newId(1_900_000_000_000));
    expect(new Set(ids).size).to.equal(ids.length);
    expect([...ids].sort()).to.deep.equal(ids);
  });

  it('are recognized by their form', () => {
    expect(isUuid('6F1D3C9A-27B4-4E83-9A55-0C8E2F7B41D6')).to.equal(true);
    for (const text of [
      '',
      'x',
      '6f1d3c9a27b44e839a550c8e2f7b41d6',
      '6f1d3c9a-27b4-4e83-9a55-0c8e2f7b41dg',
    ]) {
      expect(isUuid(text), text).to.equal(false);
    }
  });
});

describe('names of streams', () => {
  it('contain the id of their object, even an id with dashes', () => {
    const id = newId(1_800_000_000_000);
    for (const name of [streams.agent, streams.task, streams.fires, streams.run]) {
      expect(idOf(name(id))).to.equal(id);
    }
  });

  it('of names, keys and idempotency keys differ by each of their parts', () => {
    const names = [
      streams.agentName('default', 'a'),
      streams.agentName('default', 'b'),
      streams.key('dedupe', 'o', 'k'),
      streams.key('overlap', 'o', 'k'),
      streams.key('dedupe', 'p', 'k'),
      streams.key('dedupe', 'o', 'l'),
      streams.idempotency('o', 'k'),
      streams.idempotency('p', 'k'),
    ];
    expect(new Set(names).size).to.equal(names.length);
  });

  it('give publications an id of time and revision', () => {
    expect(streamIdOf('2026-01-01T00:00:00.000Z', 7)).to.equal('1767225600000-7');
  });
});
