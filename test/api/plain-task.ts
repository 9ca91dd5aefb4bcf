/** A task that is in order, for an owner: hourly, doing nothing. */
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
