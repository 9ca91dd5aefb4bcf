/** The task field at which an invalid schedule is reported. */
export type ScheduleField = 'schedule_expr' | 'timezone' | 'starts_at' | 'ends_at';

/** A schedule that cannot be compiled. `issue` names the fault and its place for the client. */
export class ScheduleError extends Error {
  readonly field: ScheduleField;
  readonly issue: string;

  constructor(field: ScheduleField, issue: string) {
    super(`${field}: ${issue}`);
    this.name = 'ScheduleError';
    this.field = field;
    this.issue = issue;
  }
}

/** An error in `schedule_expr`. */
export function expressionError(issue: string): ScheduleError {
  return new ScheduleError('schedule_expr', issue);
}
