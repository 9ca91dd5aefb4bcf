import type { DataOf } from '../../../domain/events/catalogue.ts';

type BackfillType =
  | 'BackfillRequested'
  | 'BackfillAdvanced'
  | 'BackfillCompleted'
  | 'BackfillCanceled';

export function backfillSamples(at: string): {
  readonly [T in BackfillType]: readonly DataOf<T>[];
} {
  const backfill: DataOf<'BackfillRequested'> = {
    task_id: 'task-1',
    task_revision: 0,
    created_by: 'agent-1',
    from: at,
    to: at,
    only: 'missing',
    concurrency: 5,
    total: 1,
    earlier: ['backfill-0'],
  };
  return {
    BackfillRequested: [backfill, { ...backfill, params: { limit: 5 } }],
    BackfillAdvanced: [
      {
        up_to: at,
        requested: 2,
        existing: 1,
        unfinished: [at],
        outcomes: { succeeded: 1, failed: 0, canceled: 0, skipped: 0 },
      },
      {
        up_to: null,
        requested: 0,
        existing: 0,
        unfinished: [],
        outcomes: { succeeded: 0, failed: 0, canceled: 0, skipped: 0 },
      },
    ],
    BackfillCompleted: [{}],
    BackfillCanceled: [{ by: 'request' }, { by: 'task_canceled' }],
  };
}
