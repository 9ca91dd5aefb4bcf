import { expect } from 'chai';
import { toIso } from '../../../../domain/clock.ts';
import { backfillRunId } from '../../../../domain/ids.ts';
import { streams } from '../../../../domain/streams.ts';
import type { ReceivedResponse } from '../../../support/api-client.ts';
import { request } from '../../../projections/recorded.ts';
import { useRunningApi } from '../../../support/running-api.ts';
import { ExplainedWorld, hour } from './explaining.ts';

describe('an explanation of a backfilled time', () => {
  const api = useRunningApi();
  let world: ExplainedWorld;
  before(async () => {
    world = await ExplainedWorld.open(api(), '2027-02-01T07:30:00.000Z');
  });

  /** An hourly task with no fires for three hours, and a backfill of them. */
  async function backfilled(fields: object = {}) {
    const task = await world.create({ misfire_policy: 'skip', misfire_grace_seconds: 60 });
    const at = world.nextHour;
    await world.until(at + 2 * hour + 1_800_000).decide(task);
    const span = { from: toIso(at), to: toIso(at + 2 * hour), ...fields };
    const headers = { 'x-reason': 'the outage' };
    const { client } = world.person;
    const answer = await client.post(`/tasks/${task}/backfill`, span, { headers });
    expect(answer.status, answer.text).to.equal(202);
    return { task, at, backfill: answer.textAt('details.backfill_id') };
  }

  /** How the backfill manager handles one of its times. */
  async function runIt(task: string, at: number, backfill: string): Promise<string> {
    const nominal = toIso(at);
    const run = backfillRunId(task, nominal, backfill);
    const data = request({ task_id: task, trigger: 'backfill', scheduled_for: nominal });
    await api().append(streams.run(run), [{ type: 'RunRequested', data }]);
    return run;
  }

  const evidenceIn = (answer: ReceivedResponse) =>
    answer.json['evidence'] as { type: string; actor: string; reason: string | null }[];

  it('says why the fire did not run, and what the backfill did', async () => {
    const { task, at, backfill } = await backfilled();
    const run = await runIt(task, at + hour, backfill);
    await world.work(task, run, 3);
    const answer = await world.explain(task, at + hour);
    expect(answer.json).to.include({ fired: false, reason: 'missed', run_id: null });
    expect(answer.textAt('message')).to.match(
      new RegExp(`Run ${run} \\(requested by a backfill for .*succeeded`),
    );
    const evidence = evidenceIn(answer);
    expect(evidence.map(({ type }) => type)).to.deep.equal([
      ...['FiresSkipped', 'BackfillRequested', 'RunRequested', 'RunSucceeded'],
    ]);
    expect(evidence[1]).to.include({ actor: world.person.id, reason: 'the outage' });
  });

  it('ignores times that a backfill has not reached, skipped, or does not include', async () => {
    const { task, at, backfill } = await backfilled({ to: toIso(world.nextHour + hour) });
    await runIt(task, at, backfill);
    for (const nominal of [at + hour, at + 2 * hour, at + 100 * hour]) {
      expect((await world.explain(task, nominal)).textAt('message')).not.to.contain('backfill');
    }
  });

  it('omits the backfill, and says so, if the view of backfills is unavailable', async () => {
    const { task, at } = await backfilled();
    api().views.away = true;
    try {
      const answer = await world.explain(task, at);
      expect(answer.json).to.include({ fired: false, reason: 'missed' });
      expect(answer.textAt('message')).to.contain('could not be looked up');
    } finally {
      api().views.away = false;
    }
  });
});
