import { expect } from 'chai';
import type { EventStore } from '../../../domain/event-store.ts';
import { rollbackCommand } from '../../../domain/operators/projection-commands.ts';
import type { Projection, ReadModel } from '../../../projections/read-model.ts';
import { runsProjection } from '../../../projections/views/runs.ts';
import { eventually } from '../../support/signals.ts';
import { notAnswering } from '../failing-stores.ts';
import { ProjectorHarness } from '../projector-harness.ts';
import { request, success } from '../recorded.ts';

const runs = runsProjection as unknown as Projection;
const RUNS = 12;

/** The steps of a switch; the projector crashes before and after each. */
const stages = [
  { what: 'recording that it is ready', of: 'append', with: 'ProjectionRebuildReady' },
  { what: 'recording the switch', of: 'append', with: 'ProjectionSwitched' },
  { what: 'moving the pointer', of: 'switchTo', with: '' },
  { what: 'listing generations after it', of: 'generations', with: '' },
] as const;
type Stage = (typeof stages)[number];

/** The stores of a process that crashes at a step. No later call of the process reaches them. */
class Mortal {
  dead = false;
  readonly store: EventStore;
  readonly readModel: ReadModel;
  readonly #stage: Stage;
  readonly #when: 'before' | 'after';
  #switched = false;

  constructor(harness: ProjectorHarness, stage: Stage, when: 'before' | 'after') {
    this.#stage = stage;
    this.#when = when;
    this.store = this.#through(harness.store);
    this.readModel = this.#through(harness.readModel);
  }

  #through<T extends object>(target: T): T {
    return new Proxy(target, {
      get: (_, property) => {
        const member: unknown = Reflect.get(target, property);
        if (typeof member !== 'function') return member;
        const call = (...args: readonly unknown[]): unknown =>
          Reflect.apply(member, target, args) as unknown;
        // Following is not a step of a switch; its signal ends it.
        if (property === 'subscribe') return call;
        return async (...args: readonly unknown[]) => {
          if (this.dead) throw notAnswering();
          const isIt = this.#isStage(String(property), args);
          if (isIt && this.#when === 'before') this.dead = true;
          if (this.dead) throw notAnswering();
          const result = await call(...args);
          if (isIt) this.dead = true;
          if (this.dead) throw notAnswering();
          if (property === 'switchTo') this.#switched = true;
          return result;
        };
      },
    });
  }

  #isStage(method: string, args: readonly unknown[]): boolean {
    const { of, with: type } = this.#stage;
    if (method !== of) return false;
    if (of === 'append') return JSON.stringify(args[1]).includes(`"type":"${type}"`);
    // `generations` is called many times. The step is the call after the switch.
    return of === 'switchTo' || this.#switched;
  }
}

describe('a switch whose projector crashes', () => {
  let harness: ProjectorHarness;
  beforeEach(async () => {
    harness = await ProjectorHarness.open();
    for (let n = 0; n < RUNS; n += 1) {
      const leased_until = '2026-03-01T09:00:30.000Z';
      harness.log.add(`run-r${n}`, 'RunRequested', request());
      harness.log.add(`run-r${n}`, 'RunStarted', { worker: 'w', attempt: 1, leased_until });
      harness.log.add(`run-r${n}`, 'RunSucceeded', success());
    }
    const head = await harness.append();
    harness.start([runs]);
    await harness.reached(runs, head);
    await harness.stop();
  });
  afterEach(() => harness.close());

  /** Lets another projector continue until reads use a version and the previous one is kept. */
  async function goesOn(version: number, before: number): Promise<void> {
    const projector = harness.start([runs]);
    await eventually(() => {
      const [status] = projector.status();
      const { rebuild, previous } = status ?? {};
      expect({ now: status?.version, rebuild, previous: previous?.version }).to.deep.equal({
        now: version,
        rebuild: null,
        previous: before,
      });
    });
    expect(await harness.readModel.liveGeneration(runs)).to.equal(version);
    expect(await harness.readModel.generations(runs)).to.deep.equal([1, 2]);
    expect(await harness.readModel.count(runs, [])).to.equal(RUNS);
    const log = await harness.store.readStream('projection-runs');
    const switches = log.filter(({ type }) => type === 'ProjectionSwitched');
    expect(switches.at(-1)?.data).to.deep.include({ version, before });
    await harness.stop();
  }

  /** Runs a projector that crashes at a step, and checks that everything can always be read. */
  async function diesAt(stage: Stage, when: 'before' | 'after'): Promise<void> {
    const mortal = new Mortal(harness, stage, when);
    harness.start([runs], { store: mortal.store, readModel: mortal.readModel });
    await eventually(async () => {
      expect(await harness.readModel.count(runs, [])).to.equal(RUNS);
      expect(mortal.dead).to.equal(true);
    });
    await harness.stop();
    expect(await harness.readModel.count(runs, [])).to.equal(RUNS);
  }

  for (const stage of stages) {
    for (const when of ['before', 'after'] as const) {
      it(`${when} ${stage.what} is completed by the next projector, and so is a rollback`, async () => {
        await harness.rebuild(runs);
        await diesAt(stage, when);
        await goesOn(2, 1);
        if (stage.with === 'ProjectionRebuildReady') return;
        await rollbackCommand(harness.order(runs));
        await diesAt(stage, when);
        await goesOn(1, 2);
        expect(
          (await harness.store.readStream('projection-runs')).map(({ type }) => type),
        ).to.include('ProjectionSwitched');
      });
    }
  }
});
