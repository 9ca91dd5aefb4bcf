import { expect } from 'chai';
import { viewsUnavailable } from '../../../api/serving/projection-state.ts';
import { toIso } from '../../../domain/clock.ts';
import { PROJECTION_REPORT } from '../../../projections/projector/projection-report.ts';
import { statisticsProjection } from '../../../projections/views/statistics.ts';

describe('a read of a view that was never built', () => {
  const now = Date.parse('2026-03-01T09:00:00Z');
  /** The message if a projector reported at an instant; null: none ever did. */
  async function messageAfter(reported: number | null): Promise<string> {
    const report = reported === null ? null : { at: toIso(reported), views: [] };
    const error = await viewsUnavailable(
      {
        readModel: { liveGeneration: async () => null },
        coordination: {
          recall: async (name) =>
            name === PROJECTION_REPORT && report !== null ? JSON.stringify(report) : null,
        },
        projections: [statisticsProjection],
        clock: { now: () => now },
      },
      [statisticsProjection],
    );
    return error.message;
  }

  it('says that the view is being built while a projector is running', async () => {
    expect(await messageAfter(now - 1_000)).to.equal('views are being built: statistics');
  });

  it('says so if no projector is running', async () => {
    const expected = 'views are not built, and no projector is running: statistics';
    expect(await messageAfter(null)).to.equal(expected);
    expect(await messageAfter(now - 60_000)).to.equal(expected);
  });
});
