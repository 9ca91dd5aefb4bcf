import type { DesiredTask } from '../apply/apply-file.ts';
import { nameOf, type Step } from '../apply/apply-plan.ts';
import type { Outcome } from '../apply/apply.ts';
import type { TaskRecord } from '../calling/records.ts';
import type { Session } from '../calling/session.ts';
import { printable } from '../terminal/paint.ts';
import type { BadLine, CrontabJob } from './parse-crontab.ts';

/** A job of the crontab and its task. */
export interface ImportedJob {
  readonly job: CrontabJob;
  readonly wanted: DesiredTask;
  /** The schedule in words. */
  readonly words: string;
  /** The task of an earlier import, which stays unchanged; null for none. */
  readonly present: TaskRecord | null;
}

/** The effect of an import. */
export interface CrontabImport {
  readonly set: string;
  readonly jobs: readonly ImportedJob[];
  readonly badLines: readonly BadLine[];
  /** Tasks of the set without a line. */
  readonly missing: readonly Extract<Step, { kind: 'cancel' }>[];
  readonly steps: readonly Step[];
  readonly warnings: readonly string[];
}

/**
 * Prints the tasks of a crontab, its bad lines and the tasks without a line; warnings go to standard error.
 * @param isDone whether the import was carried out
 */
export function showImport(
  session: Session,
  planned: CrontabImport,
  outcomes: readonly Outcome[],
  isDone: boolean,
): void {
  const { paint } = session;
  const { set, jobs, badLines, missing, warnings } = planned;
  const results = new Map(outcomes.map((outcome) => [nameOf(outcome.step), outcome]));
  const isCanceled = (name: string): boolean => results.get(name)?.error === null;
  const answer = {
    set,
    done: isDone,
    tasks: jobs.map((each) => taskAnswer(each, results.get(each.wanted.name))),
    missing: missing.map(({ name, task }) => ({
      name,
      task_id: task.id,
      canceled: isCanceled(name),
    })),
    bad_lines: badLines,
    warnings,
  };
  session.answer(answer, () => {
    const table = session.table<ImportedJob>(
      [
        { title: 'LINE', cell: ({ job }) => String(job.line) },
        { title: 'TASK', cell: ({ wanted, present }) => `${present ? '=' : '+'} ${wanted.name}` },
        { title: 'SCHEDULE', cell: ({ words }) => words },
        { title: 'ACTION', cell: actionOf },
        { title: 'COMMAND', maxWidth: 60, cell: ({ job }) => job.command },
      ],
      jobs,
      'no jobs',
    );
    const bad = badLines.map(
      ({ line, text, issue }) =>
        `${paint.bad(`line ${line}`)}: ${printable(issue)}\n    ${printable(text)}`,
    );
    const gone = missing.map(({ name, task, why }) => {
      const result = isCanceled(name) ? 'canceled' : 'not canceled; use --cancel-missing';
      return `${paint.warning(`- ${name}`)} ${task.id}: ${why} (${result})`;
    });
    const failed = outcomes.flatMap(({ step, error }) =>
      error === null ? [] : [`${paint.bad(nameOf(step))}: ${printable(error)}`],
    );
    const created = outcomes.filter(({ step, error }) => step.kind === 'create' && error === null);
    const present = jobs.filter((each) => each.present !== null).length;
    const count = isDone ? created.length : jobs.length - present;
    const end = `${set}: ${count} ${isDone ? 'created' : 'to create'}, ${present} unchanged`;
    return [table, ...bad, ...gone, ...failed, end].join('\n');
  });
  for (const warning of warnings) session.aside(paint.warning(printable(warning)));
}

function taskAnswer({ job, wanted, words, present }: ImportedJob, outcome: Outcome | undefined) {
  return {
    line: job.line,
    name: wanted.name,
    task_id: present?.id ?? outcome?.taskId ?? null,
    exists: present !== null,
    paused: present === null ? wanted.paused : present.status === 'paused',
    schedule_text: words,
    fields: wanted.fields,
    error: outcome?.error ?? null,
  };
}

/** How a run handles the command. */
function actionOf({ wanted, present }: ImportedJob): string {
  if (present !== null) return 'unchanged';
  return wanted.paused ? 'logs it, paused' : 'posts it';
}
