import { scheduleText } from '../../../domain/schedule/words/schedule-text.ts';
import { unknownZone } from '../../../domain/schedule/zone-names.ts';
import { zoneOf } from '../../../domain/schedule/zone.ts';
import { carryOut, presentTasks } from '../apply/apply.ts';
import { refusalOf } from '../apply/apply-check.ts';
import { nameIn, readWanted, type WantedTask } from '../apply/apply-file.ts';
import { planOf, type Step } from '../apply/apply-plan.ts';
import { exitCodes, usageFault } from '../calling/faults.ts';
import type { TaskRecord } from '../calling/records.ts';
import type { Session } from '../calling/session.ts';
import { readText } from '../terminal/values.ts';
import { readCrontab, type BadLine, type CrontabJob } from './crontab-lines.ts';
import { showImport } from './crontab-screen.ts';
import { crontabTasks } from './crontab-tasks.ts';
import type { ImportCrontabOptions } from './import-crontab-command.ts';

/** A job of the crontab, and its task. */
export interface ImportedJob {
  readonly job: CrontabJob;
  readonly wanted: WantedTask;
  /** The schedule in words. */
  readonly words: string;
  /** The task that an earlier import made, which is left alone; null for none. */
  readonly present: TaskRecord | null;
}

/** What an import does, or would do. */
export interface CrontabImport {
  readonly set: string;
  readonly jobs: readonly ImportedJob[];
  readonly badLines: readonly BadLine[];
  /** Tasks of the set whose line is gone. */
  readonly missing: readonly {
    readonly name: string;
    readonly task: TaskRecord;
    /** Its line is gone, or an older task has its name. */
    readonly why: string;
  }[];
  readonly steps: readonly Step[];
  readonly warnings: readonly string[];
}

/**
 * Shows what tasks the jobs of a crontab become, and with `--yes` creates those that are not there yet. Tasks that an
 * earlier import made stay as they are: people change what they do. A task whose line is gone is only canceled if that
 * is asked for.
 *
 * @returns the exit code: 2 for lines that cannot be imported, and where `--yes` is missing
 */
export async function importCrontab(
  session: Session,
  file: string | undefined,
  options: ImportCrontabOptions,
): Promise<number> {
  if (file === undefined) {
    throw usageFault(
      'which crontab? Name its file, or - for the standard input (an export in a folder of that name is ./crontab)',
    );
  }
  const text = await readText(file, session.surroundings);
  const planned = await planImport(session, text, options);
  const blocked = planned.badLines.length > 0 && options.skipBad !== true;
  const isDone = options.yes === true && options.dryRun !== true && !blocked;
  const outcomes = isDone ? await carryOut(session, planned) : [];
  showImport(session, planned, outcomes, isDone);
  if (blocked) {
    const count = planned.badLines.length;
    session.aside(
      `svc: nothing was created: ${count} ${count === 1 ? 'line' : 'lines'} cannot be imported; ` +
        'correct them, or leave them out with --skip-bad',
    );
    return exitCodes.usage;
  }
  if (!isDone && options.dryRun !== true && planned.steps.length > 0) {
    session.aside('svc: nothing was done: add --yes to do it');
    return exitCodes.usage;
  }
  return outcomes.find(({ fault }) => fault !== null)?.exitCode ?? exitCodes.ok;
}

async function planImport(
  session: Session,
  text: string,
  options: ImportCrontabOptions,
): Promise<CrontabImport> {
  const timezone = zoneAsked(options.timezone);
  const postUrl = urlAsked(options.post);
  const { jobs, badLines, variables } = readCrontab(text, options.system === true);
  const tasks = crontabTasks(jobs, { timezone, postUrl });
  const wanted = readWanted({ set: options.set, tasks }, await session.caller());
  const present = await presentTasks(session, wanted.set);
  const { steps } = planOf(wanted, present);
  const imported = jobs.flatMap((job, at): ImportedJob[] => {
    const task = wanted.tasks[at];
    return task === undefined ? [] : [importedJob(job, task, wanted.set, present)];
  });
  const refused = imported.flatMap((each): (ImportedJob & { readonly issue: string })[] => {
    if (each.present !== null) return [];
    const issue = refusalOf({ kind: 'create', wanted: each.wanted }, session.clock.now());
    return issue === null ? [] : [{ ...each, issue: `${issue}; correct the line` }];
  });
  const refusedTasks = new Set(refused.map((each) => each.wanted));
  const missing = steps.flatMap((step) => (step.kind === 'cancel' ? [step] : []));
  const importable = imported.filter((each) => !refusedTasks.has(each.wanted));
  const isDone = (step: Step): boolean =>
    step.kind === 'create'
      ? !refusedTasks.has(step.wanted)
      : step.kind === 'cancel' && options.cancelMissing === true;
  return {
    set: wanted.set,
    jobs: importable,
    badLines: [
      ...badLines,
      ...refused.map(({ job: { line, schedule, command }, issue }) => {
        return { line, text: `${schedule} ${command}`, issue };
      }),
    ].sort((a, b) => a.line - b.line),
    missing,
    steps: steps.filter(isDone),
    warnings: warningsOf(importable, variables, postUrl),
  };
}

function importedJob(
  job: CrontabJob,
  wanted: WantedTask,
  set: string,
  tasks: readonly TaskRecord[],
): ImportedJob {
  const timezone = String(wanted.fields['timezone']);
  const anchor = 0; // Cron has no phase.
  const words = scheduleText({ kind: 'cron', expr: job.schedule, timezone, anchor });
  const present = tasks.find(
    ({ status, tags }) => status !== 'canceled' && nameIn(set, tags) === wanted.name,
  );
  return { job, wanted, words, present: present ?? null };
}

/** What somebody should know before the tasks are created. */
function warningsOf(
  jobs: readonly ImportedJob[],
  variables: readonly string[],
  postUrl: string | null,
): readonly string[] {
  const warnings: string[] = [];
  const isAnyNew = jobs.some(({ present }) => present === null);
  if (isAnyNew && postUrl === null) {
    warnings.push(
      'without --post, new tasks only log their command and are paused: replace the step "command" of each ' +
        'by one that does the work (svc tasks update <id> --payload @file), then svc tasks resume <id>',
    );
  }
  if (variables.length > 0) {
    warnings.push(
      `${variables.join(', ')}: variables are not taken over; set them where the commands run`,
    );
  }
  for (const { job, wanted, present } of jobs) {
    const zone = wanted.fields['timezone'];
    if (present !== null && present.timezone !== zone) {
      warnings.push(
        `line ${job.line}: its task keeps the time zone ${present.timezone}, not ${String(zone)}; ` +
          `change it with svc tasks update ${present.id} --zone ${String(zone)}`,
      );
    }
  }
  return warnings;
}

function zoneAsked(given: string | undefined): string {
  const name = given ?? new Intl.DateTimeFormat().resolvedOptions().timeZone;
  const zone = zoneOf(name);
  if (zone !== null) return zone.name;
  throw usageFault(`--timezone: ${unknownZone(name)}`);
}

function urlAsked(given: string | undefined): string | null {
  if (given === undefined) return null;
  const url = URL.canParse(given) ? new URL(given) : null;
  if (url?.protocol === 'http:' || url?.protocol === 'https:') return given;
  throw usageFault(`--post: ${given} is not an http or https URL`);
}
