import { expect } from 'chai';
import {
  besideReport,
  PROJECTION_REPORT,
  recallReport,
} from '../../../projections/projector/projection-report.ts';

const shapes = [
  { name: 'agents', schema: 1 },
  { name: 'runs', schema: 5 },
];

/** The report that results from stored reports, whose views are given as `name schema`. */
async function recalled(reports: Readonly<Record<string, string>>): Promise<unknown> {
  const memory = { recall: async (name: string) => reports[name] ?? null };
  const report = await recallReport(memory, shapes);
  return report && { at: report.at, views: report.views.map((v) => `${v.name} ${v.schema}`) };
}

const report = (at: string, ...views: readonly string[]): string =>
  JSON.stringify({
    at: `2026-03-02T00:00:${at}.000Z`,
    views: views.map((view) => ({ name: view.split(' ')[0], schema: Number(view.split(' ')[1]) })),
  });

describe("the report of the views' status", () => {
  const beside = besideReport(shapes);

  it('comes from the leading projector if that knows all shapes of the release', async () => {
    expect(
      await recalled({
        [PROJECTION_REPORT]: report('10', 'agents 1', 'runs 5'),
        [beside]: report('09', 'runs 5'),
      }),
    ).to.deep.equal({ at: '2026-03-02T00:00:10.000Z', views: ['agents 1', 'runs 5'] });
  });

  it('leaves out shapes of another release', async () => {
    expect(
      await recalled({ [PROJECTION_REPORT]: report('10', 'agents 1', 'runs 4') }),
    ).to.deep.equal({ at: '2026-03-02T00:00:10.000Z', views: ['agents 1'] });
  });

  it('adds the shapes that the leader does not know from another projector', async () => {
    const views = ['agents 1', 'runs 5'];
    for (const [led, told] of [
      ['10', '11'],
      ['11', '10'],
    ] as const) {
      const found = await recalled({
        [PROJECTION_REPORT]: report(led, 'agents 1', 'runs 4'),
        [beside]: report(told, 'runs 5'),
      });
      expect(found).to.deep.equal({ at: '2026-03-02T00:00:11.000Z', views });
    }
  });

  it('leaves out the report of a projector that is gone', async () => {
    const led = ['agents 1', 'runs 4'] as const;
    expect(
      await recalled({
        [PROJECTION_REPORT]: report('30', ...led),
        [beside]: report('19', 'runs 5'),
      }),
    ).to.deep.include({ views: ['agents 1'] });
    expect(
      await recalled({
        [PROJECTION_REPORT]: report('19', ...led),
        [beside]: report('30', 'runs 5'),
      }),
    ).to.deep.include({ views: ['runs 5'] });
  });

  it('is null if there is no valid report', async () => {
    expect(await recalled({})).to.equal(null);
    expect(await recalled({ [PROJECTION_REPORT]: '{"at":1}', [beside]: '{' })).to.equal(null);
  });
});
