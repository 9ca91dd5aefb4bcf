/** Which field of a task a fault in a schedule is about. */
export type ScheduleField = 'schedule_expr' | 'timezone' | 'starts_at' | 'ends_at';

/** A schedule that can't be compiled. `issue` says what is wrong and where, for the client. */
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
