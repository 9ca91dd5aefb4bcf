import { expect } from 'chai';
import { beingMade } from '../../../api/serving/projection-state.ts';
import { toIso } from '../../../domain/clock.ts';
import { PROJECTION_REPORT } from '../../../projections/projector/projection-report.ts';
import { statisticsProjection } from '../../../projections/views/statistics.ts';

describe('a read of a view that was never made', () => {
  const now = Date.parse('2026-03-01T09:00:00Z');
  /** What is said where a projector reported at an instant; null: none ever did. */
  async function said(reported: number | null): Promise<string> {
    const report = reported === null ? null : { at: toIso(reported), views: [] };
    const error = await beingMade(
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

  it('is told that it is being made while a projector is at work', async () => {
    expect(await said(now - 1_000)).to.equal('being made: statistics');
  });

  it('is told where no projector is known to make it', async () => {
    const expected = 'not yet made, and no projector is known to be at work: statistics';
    expect(await said(null)).to.equal(expected);
    expect(await said(now - 60_000)).to.equal(expected);
  });
});
