import type { Outcome } from '../apply/apply.ts';
import type { Session } from '../calling/session.ts';
import { printable } from '../terminal/paint.ts';
import type { CrontabImport, ImportedJob } from './import-crontab.ts';

/**
 * Answers with the tasks of a crontab, its bad lines and the tasks whose line is gone; warnings go beside the answer.
 * @param isDone whether the outcomes are what was done; else it is what would be done
 */
export function showImport(
  session: Session,
  planned: CrontabImport,
  outcomes: readonly Outcome[],
  isDone: boolean,
): void {
  const { set, jobs, badLines, missing, warnings } = planned;
  const results = new Map(
    outcomes.map((outcome) => [
      outcome.step.kind === 'create' ? outcome.step.wanted.name : outcome.step.name,
      outcome,
    ]),
  );
  const answer = {
    set,
    done: isDone,
    tasks: jobs.map((each) => taskAnswer(each, results.get(each.wanted.name))),
    missing: missing.map(({ name, task }) => ({
      name,
      task_id: task.id,
      canceled: results.get(name)?.fault === null,
    })),
    bad_lines: badLines,
    warnings,
  };
  session.answer(answer, () => {
    const columns = ['LINE', 'TASK', 'SCHEDULE', 'DOES', 'COMMAND'].map((title) => ({
      title,
      ...(title === 'COMMAND' ? { most: 60 } : {}),
    }));
    const rows = jobs.map((each) => [
      String(each.job.line),
      `${each.present === null ? '+' : '='} ${each.wanted.name}`,
      each.words,
      doesOf(each),
      each.job.command,
    ]);
    const bad = badLines.map(({ line, text, issue }) => {
      return `${session.paint.bad(`line ${line}`)}: ${printable(issue)}\n    ${printable(text)}`;
    });
    const gone = missing.map(({ name, task, why }) => {
      const isCanceled = results.get(name)?.fault === null;
      const what = isCanceled ? 'canceled' : 'not canceled; --cancel-missing cancels it';
      return `${session.paint.warning(`- ${name}`)} ${task.id}: ${why} (${what})`;
    });
    const failed = outcomes.flatMap(({ step, fault }) => {
      if (fault === null) return [];
      const name = step.kind === 'create' ? step.wanted.name : step.name;
      return [`${session.paint.bad(name)}: ${printable(fault)}`];
    });
    const created = outcomes.filter(({ step, fault }) => step.kind === 'create' && fault === null);
    const present = jobs.filter((each) => each.present !== null).length;
    const count = isDone ? created.length : jobs.length - present;
    const end = `${set}: ${count} ${isDone ? 'created' : 'to create'}, ${present} there already`;
    return [session.table(columns, rows, 'no jobs'), ...bad, ...gone, ...failed, end].join('\n');
  });
  for (const warning of warnings) session.aside(session.paint.warning(printable(warning)));
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
    error: outcome?.fault ?? null,
  };
}

/** What a run does with the command. */
function doesOf({ wanted, present }: ImportedJob): string {
  if (present !== null) return 'stays as it is';
  return wanted.paused ? 'logs it, paused' : 'posts it';
}
