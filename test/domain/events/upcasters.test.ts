import { expect } from 'chai';
import { readdirSync, readFileSync } from 'node:fs';
import type { RawEvent } from '../../../domain/event-store.ts';
import { catalogue, type EventType } from '../../../domain/events/catalogue.ts';
import { createEventCodec } from '../../../domain/events/codec.ts';
import { upcast, upcasters } from '../../../domain/events/upcasters.ts';
import { requireRun, runFold } from '../../../domain/runs/run.ts';
import { endsOf } from '../../../domain/runs/run-steps.ts';

const directory = new URL('./samples/', import.meta.url);

/** An event as an older release wrote it. */
function stored(file: string): RawEvent {
  const { data, metadata, ...rest } = JSON.parse(
    readFileSync(new URL(file, directory), 'utf8'),
  ) as Omit<RawEvent, 'data' | 'metadata'> & { readonly data: object; readonly metadata: object };
  return { ...rest, data: JSON.stringify(data), metadata: JSON.stringify(metadata) };
}

const fileOf = (type: string, version: number): string =>
  `${type.replace(/(?<!^)[A-Z]/g, '-$&').toLowerCase()}-${version}.json`;

describe('an event of an older version', () => {
  const codec = createEventCodec();
  const files = readdirSync(directory);

  for (const type of Object.keys(catalogue) as EventType[]) {
    for (let version = 1; version < catalogue[type].version; version += 1) {
      it(`can be read: ${type} ${version}`, () => {
        expect(files).to.include(fileOf(type, version));
        const read = codec.decode(stored(fileOf(type, version)));
        expect(read.fault).to.equal(undefined);
        expect(read.metadata.schemaVersion).to.equal(String(version));
      });
    }
  }

  it('of type RunRequested 1 gets the overlap policy allow and starts without prior steps', () => {
    const read = codec.decode(stored('run-requested-1.json'));
    expect(read.data).to.deep.include({
      overlap_policy: 'allow',
      prior_steps: [],
      task_revision: 3,
      trigger: 'schedule',
    });
    expect(runFold.evolve(runFold.initial, read as never, read)).to.include({ state: 'queued' });
  });

  it('of type RunRequested 2 keeps its prior results', () => {
    const read = codec.decode(stored('run-requested-2.json'));
    const run = requireRun(runFold.evolve(runFold.initial, read as never, read));
    expect(endsOf(run.steps).map(({ step }) => step)).to.deep.equal(['fetch']);
    expect(run.request.prior_results).to.equal(null);
  });

  it('of type RunRequested 3 has no parent', () => {
    const read = codec.decode(stored('run-requested-3.json'));
    const run = requireRun(runFold.evolve(runFold.initial, read as never, read));
    expect(run.request.parent).to.equal(null);
  });

  it('of type RunRequested 6 keeps the payload of its triggering event', () => {
    const read = codec.decode(stored('run-requested-6.json'));
    const run = requireRun(runFold.evolve(runFold.initial, read as never, read));
    expect(run.request.event?.payload).to.deep.equal({ order: 7, lines: ['a', 'b'] });
  });

  it('has one stored sample for each upcaster, and no upcaster converts the present version', () => {
    const known = Object.entries(upcasters).flatMap(([type, versions]) =>
      Object.keys(versions).map((version) => fileOf(type, Number(version))),
    );
    expect(files.toSorted()).to.deep.equal(known.toSorted());
    for (const [type, versions] of Object.entries(upcasters)) {
      for (const version of Object.keys(versions)) {
        expect(Number(version)).to.be.below(catalogue[type as EventType].version);
      }
    }
  });

  it('that is broken yields a fault', () => {
    const sample = stored('run-requested-1.json');
    for (const data of ['[]', '3', '"x"', '{}', 'null']) {
      expect(codec.decode({ ...sample, data }).fault, data).to.be.a('string');
    }
  });

  it('is rejected if an upcaster is missing', () => {
    expect(() => upcast('Fired', {}, 1, 2)).to.throw('Fired has no upcaster from version 1');
  });
});
