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

/** What is recalled where some reports are remembered, as `name schema` of each view. */
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

describe('the report of how views are', () => {
  const beside = besideReport(shapes);

  it('is that of the projector that leads, where that knows all shapes of the release', async () => {
    expect(
      await recalled({
        [PROJECTION_REPORT]: report('10', 'agents 1', 'runs 5'),
        [beside]: report('09', 'runs 5'),
      }),
    ).to.deep.equal({ at: '2026-03-02T00:00:10.000Z', views: ['agents 1', 'runs 5'] });
  });

  it('says nothing of shapes of another release', async () => {
    expect(
      await recalled({ [PROJECTION_REPORT]: report('10', 'agents 1', 'runs 4') }),
    ).to.deep.equal({ at: '2026-03-02T00:00:10.000Z', views: ['agents 1'] });
  });

  it('has from the one beside it what the one that leads does not know', async () => {
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

  it('leaves out what the one of both has said that is gone', async () => {
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

  it('is none where nothing was said that can be read', async () => {
    expect(await recalled({})).to.equal(null);
    expect(await recalled({ [PROJECTION_REPORT]: '{"at":1}', [beside]: '{' })).to.equal(null);
  });
});
