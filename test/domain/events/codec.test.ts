import type { TObject } from '@sinclair/typebox';
import { expect } from 'chai';
import fc from 'fast-check';
import {
  EventStoreError,
  MAX_EVENT_BYTES,
  type NewEvent,
  type RawEvent,
} from '../../../domain/event-store.ts';
import { catalogue, type EventType } from '../../../domain/events/catalogue.ts';
import { createEventCodec } from '../../../domain/events/codec.ts';
import type { Metadata } from '../../../domain/events/metadata.ts';
import { occurAt } from '../../../domain/handle.ts';
import { samples } from './event-samples.ts';

const codec = createEventCodec();
const types = Object.keys(catalogue) as EventType[];
const place = {
  stream: 'stream-1',
  revision: 3,
  position: '0000000000000007',
  createdAt: '2026-03-02T09:00:00.000Z',
};

function metadata(type: EventType, more: Partial<Metadata> = {}): Metadata {
  return {
    commandId: 'c',
    $correlationId: 'k',
    actor: 'service',
    source: 'test',
    schemaVersion: String(catalogue[type].version),
    occurredAt: '2026-03-02T09:00:00.000Z',
    ...more,
  };
}

const newEvent = (type: EventType, data: unknown, about: unknown = metadata(type)): NewEvent =>
  ({ id: 'id-1', type, data, metadata: about }) as unknown as NewEvent;

const raw = (type: string, data: unknown, about: unknown): RawEvent => ({
  ...place,
  id: 'id-1',
  type,
  data: typeof data === 'string' ? data : JSON.stringify(data),
  metadata: typeof about === 'string' ? about : JSON.stringify(about),
});

function codeOf(work: () => unknown): string {
  try {
    work();
  } catch (error) {
    if (error instanceof EventStoreError) return error.code;
    throw error;
  }
  return 'none';
}

describe('the codec of events', () => {
  for (const type of types) {
    it(`decodes ${type} to what was encoded`, () => {
      expect(samples[type]).to.not.have.lengthOf(0);
      for (const data of samples[type]) {
        const about = metadata(type, { reason: 'ä', traceparent: '00-1-2-01', $causationId: 'e' });
        const encoded = codec.encode(newEvent(type, data, about));
        const decoded = codec.decode({ ...place, ...encoded });
        expect(decoded).to.deep.equal({
          ...place,
          id: 'id-1',
          type,
          data: JSON.parse(JSON.stringify(data)) as unknown,
          metadata: about,
        });
      }
    });

    it(`rejects ${type} with an unknown field, or without a required one`, () => {
      const [data] = samples[type];
      expect(codeOf(() => codec.encode(newEvent(type, { ...data, extra: 1 })))).to.equal(
        'INVALID_EVENT',
      );
      const { properties, required: fields = [] } = catalogue[type].schema as TObject;
      expect(Object.keys(properties)).to.include.members(fields);
      for (const required of fields) {
        const rest = Object.fromEntries(
          Object.entries(data as object).filter(([field]) => field !== required),
        );
        expect(
          codeOf(() => codec.encode(newEvent(type, rest))),
          required,
        ).to.equal('INVALID_EVENT');
        const read = codec.decode(raw(type, rest, metadata(type)));
        expect(read.fault, required).to.include(type);
      }
    });
  }

  describe('writing', () => {
    const step = samples.RunStepCompleted[0];

    it('writes a prepared event like any other, with its latest time', () => {
      const reason = 'said "occurredAt":"2026-03-02T09:00:00.000Z"';
      for (const more of [{}, { reason, source: reason }, { traceparent: '00-1-2-01' }]) {
        const event = newEvent('RunStepCompleted', step, metadata('RunStepCompleted', more));
        codec.prepareEvent?.(event);
        expect(codec.encode(event)).to.deep.equal(codec.encode({ ...event }));
        occurAt([event], Date.parse('2026-03-02T09:00:01.500Z'));
        const { metadata: text } = codec.encode(event);
        expect(text).to.include('"occurredAt":"2026-03-02T09:00:01.500Z"');
        expect(text).to.equal(codec.encode({ ...event }).metadata);
      }
    });

    it('refuses to prepare what it would refuse to write', () => {
      const tooLarge = { ...step, result: 'x'.repeat(MAX_EVENT_BYTES) };
      for (const event of [
        newEvent('RunStepCompleted', null),
        newEvent('RunStepCompleted', step, {}),
      ]) {
        expect(codeOf(() => codec.prepareEvent?.(event))).to.equal('INVALID_EVENT');
      }
      const large = newEvent('RunStepCompleted', tooLarge);
      expect(codeOf(() => codec.prepareEvent?.(large))).to.equal('TOO_LARGE');
    });

    it('refuses invalid events and invalid metadata', () => {
      for (const data of [null, undefined, 'text', [], 3]) {
        expect(codeOf(() => codec.encode(newEvent('AgentRemoved', data)))).to.equal(
          'INVALID_EVENT',
        );
      }
      expect(
        codeOf(() => codec.encode(newEvent('Nothing' as EventType, {}, metadata('Fired')))),
      ).to.equal('INVALID_EVENT');
      for (const about of [{}, null, { ...metadata('AgentRemoved'), occurredAt: 5 }]) {
        expect(codeOf(() => codec.encode(newEvent('AgentRemoved', {}, about)))).to.equal(
          'INVALID_EVENT',
        );
      }
    });

    it('refuses a depth that is not a positive number', () => {
      for (const [depth, code] of [
        ['1', 'none'],
        ['31', 'none'],
        ['0', 'INVALID_EVENT'],
        ['01', 'INVALID_EVENT'],
        ['-1', 'INVALID_EVENT'],
        ['deep', 'INVALID_EVENT'],
      ] as const) {
        const about = metadata('AgentRemoved', { depth });
        expect(
          codeOf(() => codec.encode(newEvent('AgentRemoved', {}, about))),
          depth,
        ).to.equal(code);
      }
    });

    it('refuses values that JSON cannot represent', () => {
      const cycle: Record<string, unknown> = {};
      cycle['self'] = cycle;
      for (const result of [10n, { deep: [1n] }, cycle, undefined]) {
        expect(
          codeOf(() => codec.encode(newEvent('RunStepCompleted', { ...step, result }))),
        ).to.equal('INVALID_EVENT');
      }
    });

    it('accepts an event of exactly the size limit, and refuses one that is a byte larger', () => {
      const event = (length: number): NewEvent =>
        newEvent('RunStepCompleted', { ...step, log: [], result: 'x'.repeat(length) });
      const { data, metadata: about } = codec.encode(event(0));
      const room = MAX_EVENT_BYTES - data.length - about.length;
      expect(codeOf(() => codec.encode(event(room)))).to.equal('none');
      expect(codeOf(() => codec.encode(event(room + 1)))).to.equal('TOO_LARGE');
    });

    it('measures bytes and not characters', () => {
      const event = (result: string): NewEvent =>
        newEvent('RunStepCompleted', { ...step, log: [], result });
      expect(codeOf(() => codec.encode(event('€'.repeat(MAX_EVENT_BYTES / 3))))).to.equal(
        'TOO_LARGE',
      );
      expect(codeOf(() => codec.encode(event('€'.repeat(MAX_EVENT_BYTES / 3 - 500))))).to.equal(
        'none',
      );
    });
  });

  describe('reading', () => {
    it('returns broken data with a fault', () => {
      const read = codec.decode(raw('Fired', '{"nominal":', metadata('Fired')));
      expect(read.fault).to.match(/not JSON/);
      expect(read.data).to.equal('{"nominal":');
      expect(codec.decode(raw('Fired', '{}', '{')).fault).to.match(/not JSON/);
    });

    it('returns the readable metadata of a broken event, and otherwise the time of the store', () => {
      const about = metadata('Fired');
      const { metadata: read } = codec.decode(raw('Fired', '{"nominal":', about));
      expect(read).to.deep.equal(about);
      for (const unreadable of ['{', null, [], { actor: 'a', occurredAt: 7 }]) {
        const broken = raw('Fired', '{}', unreadable);
        expect(codec.decode(broken).metadata.occurredAt).to.equal(broken.createdAt);
      }
    });

    it('returns a fault for metadata without a version', () => {
      for (const about of [
        {},
        null,
        [],
        'null',
        { schemaVersion: 'x' },
        { schemaVersion: '0' },
        { schemaVersion: '1.5' },
      ]) {
        expect(codec.decode(raw('AgentRemoved', {}, about)).fault).to.be.a('string');
      }
    });

    it('refuses an unknown type, because a newer release may have written it', () => {
      for (const type of ['RunTeleported', 'constructor', 'toString', '__proto__']) {
        expect(
          codeOf(() => codec.decode(raw(type, {}, metadata('Fired')))),
          type,
        ).to.equal('NEWER_SCHEMA');
      }
    });

    it('refuses a newer version of any type', () => {
      for (const type of types) {
        const about = metadata(type, { schemaVersion: String(catalogue[type].version + 1) });
        expect(
          codeOf(() => codec.decode(raw(type, samples[type][0], about))),
          type,
        ).to.equal('NEWER_SCHEMA');
      }
    });

    it('never throws anything else, whatever it finds', () => {
      const found = fc.oneof(fc.string(), fc.json());
      fc.assert(
        fc.property(fc.constantFrom(...types), found, found, (type, data, about) => {
          const code = codeOf(() => codec.decode(raw(type, data, about)));
          return code === 'none' || code === 'NEWER_SCHEMA';
        }),
        { numRuns: 300 },
      );
    });
  });
});
