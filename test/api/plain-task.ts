/** A valid task of an owner: hourly, without effect. */
export function plainTask(created_by: string) {
  return {
    title: 'Nightly',
    description: 'Cleans up',
    schedule_kind: 'cron' as const,
    schedule_expr: '0 * * * *',
    payload: { pipeline: [] as unknown[] },
    created_by,
  };
}

/**
 * The wall time of an instant in `Asia/Kolkata`, whose offset never changes, without the offset.
 */
export function inKolkata(instant: number): string {
  return new Date(instant + 5.5 * 3_600_000).toISOString().replace('Z', '');
}
