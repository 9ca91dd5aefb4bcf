import type { DataOf } from '../../../domain/events/catalogue.ts';

const at = '2026-03-02T09:00:00.000Z';

/** Samples of the events that keep figures of removed runs. */
export const retentionSamples = (
  id: string,
  text: string,
): { readonly StatisticsKept: readonly DataOf<'StatisticsKept'>[] } => ({
  StatisticsKept: [
    { day: '2026-03-02', figures: [], complete: true },
    {
      day: '2026-03-02',
      figures: [
        {
          scope: 'all',
          total: 2,
          successful: 1,
          failed: 1,
          execution_ms: 5.5,
          histogram: { zero: 1, '12': 1 },
          last_run: at,
          last_success: at,
          last_failure: null,
        },
        {
          scope: 'task-1',
          total: 1,
          successful: 0,
          failed: 1,
          execution_ms: 5,
          histogram: { '12': 1 },
          last_run: at,
          last_success: null,
          last_failure: at,
          namespace: 'north',
          skipped: 1,
          quarters: {
            '36': { total: 1, failed: 1, execution_ms: 5, histogram: { '12': 1 }, skipped: 1 },
          },
        },
        {
          scope: 'errors',
          group: '5d41402abc4b2a76',
          error: text,
          example: text,
          total: 1,
          quarters: {
            '36': { count: 1, first: at, last: at, run: id, tasks: { 'task-1': 1 }, others: 1 },
          },
        },
      ],
      complete: false,
    },
  ],
});
