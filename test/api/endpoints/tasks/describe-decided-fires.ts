import { expect } from 'chai';
import { toIso } from '../../../../domain/clock.ts';
import type { OpenStores } from '../../../support/api-stores.ts';
import { useRunningApi } from '../../../support/running-api.ts';
import { ExplainedWorld, hour, minute } from './explaining.ts';

const day = 24 * hour;

interface Fire {
  readonly reason: string;
  readonly from: string;
  readonly to: string;
  readonly count: number;
  readonly run_id: string | null;
  readonly run: { readonly id: string; readonly state: string } | null;
}

interface Part {
  readonly date: string;
  readonly from: string;
  readonly fired: number;
  readonly skipped: Readonly<Record<string, number>>;
  readonly runs: Readonly<Record<string, number>>;
}

/** The decisions about fires, which a later change of the schedule does not affect. */
export function describeDecidedFires(title: string, openStores: OpenStores | undefined): void {
  describe(`the decided fires of a task, ${title}`, () => {
    const api = useRunningApi({}, openStores);
    let world: ExplainedWorld;
    before(async () => {
      world = await ExplainedWorld.open(api(), '2027-02-01T07:30:00.000Z');
    });

    const ask = async (path: string): Promise<Record<string, unknown>> => {
      const after = await api().store.head();
      const answer = await world.person.client.get(`${path}&after=${after}`);
      if (answer.status !== 200) throw new Error(answer.text);
      return answer.json;
    };
    const firesOf = async (task: string, query: string): Promise<readonly Fire[]> =>
      (await ask(`/tasks/${task}/fires?${query}`))['items'] as readonly Fire[];
    const partsOf = async (task: string, query: string): Promise<readonly Part[]> =>
      (await ask(`/tasks/${task}/calendar?${query}`))['parts'] as readonly Part[];

    it('follow the schedule at their time, not the present one', async () => {
      const task = await world.create();
      const at = world.nextHour;
      const [run = ''] = await world.until(at + 20).decide(task);
      await world.work(task, run, 3);
      await world.until(at + hour + 20).decide(task);
      await world.person.client.put(`/tasks/${task}`, { schedule_expr: '*/5 * * * *' });
      const span = `from=${toIso(at - hour)}&to=${toIso(at + hour)}`;
      const fires = await firesOf(task, span);
      expect(fires.map(({ from }) => from)).to.deep.equal([toIso(at + hour), toIso(at)]);
      const [later, first] = fires;
      expect(first).to.deep.include({ reason: 'fired', to: toIso(at), count: 1, run_id: run });
      expect(first?.run).to.deep.include({ id: run, state: 'succeeded' });
      expect(later?.run).to.deep.include({ state: 'queued' });
      const date = toIso(at).slice(0, 10);
      const [part] = await partsOf(task, `from=${date}&to=${date}`);
      expect(part?.fired).to.equal(2);
      expect(part?.runs).to.deep.equal({
        succeeded: 1,
        failed: 0,
        canceled: 0,
        unfinished: 1,
        skipped: 0,
      });
    });

    it('are listed page by page, newest first, and only within the span', async () => {
      const task = await world.create({ schedule_expr: '* * * * *' });
      const at = world.nextHour;
      world.until(at - 30_000);
      for (let n = 0; n < 6; n += 1) await world.until(at + n * minute + 20).decide(task);
      const path = `/tasks/${task}/fires?from=${toIso(at + minute)}&to=${toIso(at + 4 * minute)}`;
      const found: string[] = [];
      let cursor: string | null = '';
      for (let pages = 0; cursor !== null; pages += 1) {
        expect(pages).to.be.lessThan(3);
        const next = cursor === '' ? '' : `&cursor=${cursor}`;
        const page = await ask(`${path}&limit=2${next}`);
        found.push(...(page['items'] as readonly Fire[]).map(({ from }) => from));
        cursor = page['next_cursor'] as string | null;
      }
      expect(found).to.deep.equal([4, 3, 2, 1].map((n) => toIso(at + n * minute)));
    });

    it('include gaps with their reason, even those that only reach into the span', async () => {
      const task = await world.create();
      const at = world.nextHour;
      await world.until(at + 20).decide(task);
      await world.command(task, 'pause');
      world.until(at + 2 * day + 20);
      await world.command(task, 'resume');
      await world.decide(task);
      const [gap] = await firesOf(task, `from=${toIso(at + day)}&to=${toIso(at + day + minute)}`);
      expect(gap).to.deep.include({ reason: 'paused', count: 48, run: null, run_id: null });
      expect([gap?.from, gap?.to]).to.deep.equal([toIso(at + hour), toIso(at + 2 * day)]);
      const dates = [0, 1, 2].map((n) => toIso(at + n * day).slice(0, 10));
      const query = `from=${dates[0]}&to=${dates[2]}`;
      const { gaps } = await ask(`/tasks/${task}/calendar?${query}`);
      expect(gaps).to.deep.equal([{ reason: 'paused', from: gap?.from, to: gap?.to, count: 48 }]);
      const month = toIso(at).slice(0, 7);
      const [whole] = await partsOf(task, `from=${month}-01&to=${month}-02&by=month`);
      expect(whole).to.deep.include({ date: month, fired: 1 });
      expect(whole?.skipped['paused']).to.equal(48);
    });

    it('are counted by the days of the requested zone', async () => {
      const task = await world.create({ schedule_expr: '30 23 * * *' });
      const midnight = Math.ceil(world.api.clock.now() / day) * day;
      const at = midnight - hour / 2;
      world.until(at - minute);
      await world.until(at + 20).decide(task);
      const dates = [midnight - day, midnight].map((each) => toIso(each).slice(0, 10));
      const query = `from=${dates[0]}&to=${dates[1]}`;
      const fired = async (zone: string) =>
        (await partsOf(task, `${query}&timezone=${zone}`)).map((part) => part.fired);
      expect(await fired('UTC')).to.deep.equal([1, 0]);
      expect(await fired('Europe/Berlin')).to.deep.equal([0, 1]);
      const [part] = await partsOf(task, `${query}&timezone=Europe/Berlin`);
      expect(part?.from).to.equal(toIso(midnight - day - hour));
    });
  });
}
