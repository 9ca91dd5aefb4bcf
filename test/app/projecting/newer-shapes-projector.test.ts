import { expect } from 'chai';
import { join } from 'node:path';
import { SystemClock } from '../../../app/clock.ts';
import { projectNewerShapes } from '../../../app/projecting/newer-shapes-projector.ts';
import { checkpointOf } from '../../../app/projecting/projector-host.ts';
import { reportProjections } from '../../../app/projecting/projector-report.ts';
import { decorate } from '../../../domain/decorate.ts';
import { silent, type Telemetry } from '../../../observability/telemetry.ts';
import { recallReport } from '../../../projections/projector/projection-report.ts';
import type { Projection } from '../../../projections/read-model.ts';
import { agentsProjection } from '../../../projections/views/agents.ts';
import { runsProjection } from '../../../projections/views/runs.ts';
import type { Coordination } from '../../../scheduler/coordination.ts';
import { openSqliteCoordination } from '../../../stores/sqlite/coordination/coordination.ts';
import { ProjectorHarness } from '../../projections/projector-harness.ts';
import { request } from '../../projections/recorded.ts';
import { reportingTo } from '../../support/reporting-to.ts';
import { eventually } from '../../support/signals.ts';
import { makeTemporaryDirectory } from '../../support/temporary-directory.ts';

const agents = agentsProjection as unknown as Projection;
const runs = runsProjection as unknown as Projection;
/** The same view in the shape of a later release, which cannot read the older one. */
const { readsOlder: _none, ...shape } = runs;
const newRuns: Projection = { ...shape, schema: runs.schema + 1 };

const LEASE = 30_000;

describe('a projector beside one of an older release', () => {
  let harness: ProjectorHarness;
  let coordination: Coordination;
  let looks = 0;
  /** Whether what the leading projector builds cannot be read. */
  let fails = false;
  let close: () => Promise<void>;
  const ending: (() => Promise<void>)[] = [];

  beforeEach(async () => {
    harness = await ProjectorHarness.open();
    const directory = await makeTemporaryDirectory();
    const opened = await openSqliteCoordination({
      directory: join(directory.path, 'coordination'),
      telemetry: silent,
    });
    looks = 0;
    fails = false;
    coordination = decorate<Coordination>(opened, {
      recall: (name) => {
        looks += 1;
        if (fails) return Promise.reject(new Error('refused'));
        return opened.recall(name);
      },
    });
    close = async () => {
      await opened.close();
      await directory.remove();
    };
  });

  afterEach(async () => {
    for (const end of ending.splice(0)) await end();
    await harness.close();
    await close();
  });

  /** Runs something until the returned function or the end of the test stops it. */
  const until = (run: (signal: AbortSignal) => Promise<void>): (() => Promise<void>) => {
    const stop = new AbortController();
    const ended = run(stop.signal);
    const end = async (): Promise<void> => {
      stop.abort();
      await ended;
    };
    ending.push(end);
    return end;
  };

  /** A leading projector with the next fence. @returns a function that ends it */
  const lead = (fence: number, views: readonly Projection[]): (() => Promise<void>) => {
    const projector = harness.start(views);
    return until((signal) =>
      reportProjections({
        coordination,
        fence,
        clock: new SystemClock(),
        telemetry: silent,
        signal,
        every: 5,
        status: () => projector.status(),
      }),
    );
  };

  const beside = (
    projections: readonly Projection[],
    owner = 'new',
    telemetry: Telemetry = silent,
  ): (() => Promise<void>) =>
    until((signal) =>
      projectNewerShapes(
        {
          stores: { store: harness.store, readModel: harness.readModel, coordination },
          projections,
          owner,
          lease: LEASE,
          gatherMs: 0,
          look: 5,
          clock: new SystemClock(),
          telemetry,
          onCheckpoint: () => undefined,
        },
        signal,
      ),
    );

  const addRun = async (id: string): Promise<string> => {
    harness.log.add(`run-${id}`, 'RunRequested', request());
    return harness.append();
  };

  const isAt = (view: Projection, position: string): Promise<void> =>
    eventually(async () => {
      expect(await harness.readModel.checkpoint(view)).to.equal(position);
    });

  it('builds and updates the views that the older one does not know, and leaves the others to it', async () => {
    lead(1, [agents, runs]);
    await addRun('a');
    beside([agents, newRuns]);
    await isAt(newRuns, await addRun('b'));
    expect(await harness.readModel.count(newRuns, [])).to.equal(2);
    const last = await addRun('c');
    await isAt(newRuns, last);
    await isAt(runs, last);
    expect(await harness.readModel.generations(agents)).to.deep.equal([1]);
    await eventually(async () => {
      const report = await recallReport(coordination, [agents, newRuns]);
      expect(report?.views.map(({ name, schema }) => [name, schema])).to.deep.equal([
        ['agents', agents.schema],
        ['runs', newRuns.schema],
      ]);
    });
  });

  it('ends when a projector of its own release leads, which continues with its views', async () => {
    const endOfOld = lead(1, [agents, runs]);
    beside([agents, newRuns]);
    await isAt(newRuns, await addRun('a'));
    await endOfOld();
    await harness.stop();
    lead(2, [agents, newRuns]);
    await isAt(newRuns, await addRun('b'));
    await eventually(async () => {
      const name = `projector of agents.${agents.schema} runs.${newRuns.schema}`;
      expect(await coordination.acquire(name, 'another', LEASE)).to.not.equal(null);
    });
    await isAt(newRuns, await addRun('c'));
    expect(await harness.readModel.generations(newRuns)).to.deep.equal([1]);
  });

  it('updates views that a former leader of its own release built', async () => {
    const endOfNew = lead(1, [agents, newRuns]);
    await isAt(newRuns, await addRun('a'));
    await endOfNew();
    await harness.stop();
    lead(2, [agents, runs]);
    beside([agents, newRuns]);
    await isAt(newRuns, await addRun('b'));
    expect(await harness.readModel.generations(newRuns)).to.deep.equal([1]);
  });

  it('runs once per release, and another takes over when it ends', async () => {
    lead(1, [runs]);
    const endOfFirst = beside([newRuns], 'first');
    await isAt(newRuns, await addRun('a'));
    beside([newRuns], 'second');
    await endOfFirst();
    await isAt(newRuns, await addRun('b'));
  });

  it("builds no view that can be read in an older shape, or whose shape is older than the leader's", async () => {
    lead(1, [agents, newRuns]);
    await isAt(newRuns, await addRun('a'));
    beside([agents, runs]);
    beside([agents, { ...newRuns, schema: newRuns.schema + 1, readsOlder: [newRuns.schema] }]);
    const before = looks;
    await eventually(() => looks - before > 8);
    expect(await harness.readModel.schemas(runs)).to.deep.equal([newRuns.schema]);
  });

  it('continues while it cannot tell what the leader builds, which is logged until it can', async () => {
    const lines: string[] = [];
    const say = (message: string): void => void lines.push(message);
    lead(1, [agents, runs]);
    beside([agents, newRuns], 'new', reportingTo({ warn: say, error: say, info: say }));
    await isAt(newRuns, await addRun('a'));
    fails = true;
    const message = 'could not check what the leading projector lacks; retrying';
    await eventually(() => lines.includes(message));
    await isAt(newRuns, await addRun('b'));
    fails = false;
    const over = `succeeded again after: ${message}`;
    await eventually(() => lines.includes(over));
    expect(lines.filter((line) => line.includes(message))).to.deep.equal([message, over]);
  });

  it('builds nothing while no process leads', async () => {
    beside([agents, newRuns]);
    await addRun('a');
    await eventually(() => looks > 4);
    expect(await harness.readModel.schemas(runs)).to.deep.equal([]);
  });
});

describe("a notice of another process's projector", () => {
  it('reports only shapes of this release', () => {
    const position = '0000000000000007';
    expect(checkpointOf(`view runs.${runs.schema} ${position}`)).to.deep.equal({
      name: 'runs',
      position,
    });
    for (const other of [
      `view runs.${runs.schema + 1} ${position}`,
      `view runs ${position}`,
      'x',
    ]) {
      expect(checkpointOf(other)).to.equal(null);
    }
  });
});
