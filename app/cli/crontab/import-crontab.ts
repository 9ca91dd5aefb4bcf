import { scheduleText } from '../../../domain/schedule/words/schedule-text.ts';
import { unknownZoneMessage } from '../../../domain/schedule/zone-names.ts';
import { zoneOf } from '../../../domain/schedule/zone.ts';
import { rejectionOf } from '../apply/apply-check.ts';
import { nameIn, parseTaskSet, type DesiredTask } from '../apply/apply-file.ts';
import { planOf, type Step } from '../apply/apply-plan.ts';
import { carryOut, presentTasks } from '../apply/apply.ts';
import { exitCodes, usageError } from '../calling/command-errors.ts';
import type { TaskRecord } from '../calling/records.ts';
import type { Session } from '../calling/session.ts';
import { readText } from '../terminal/values.ts';
import { showImport, type CrontabImport, type ImportedJob } from './crontab-screen.ts';
import { crontabTasks } from './crontab-tasks.ts';
import { parseCrontab, type BadLine, type CrontabJob } from './parse-crontab.ts';

/** The options of `svc import crontab`. */
interface ImportCrontabOptions {
  readonly system: boolean | undefined;
  readonly set: string;
  readonly timezone: string | undefined;
  readonly post: string | undefined;
  readonly skipBad: boolean | undefined;
  readonly cancelMissing: boolean | undefined;
  readonly dryRun: boolean | undefined;
  readonly yes: boolean | undefined;
}

/**
 * Shows the tasks for the jobs of a crontab and, with `--yes`, creates the missing ones. Tasks of an earlier import stay
 * unchanged, because users edit them. Tasks without a line are only canceled on request.
 *
 * Returns the exit code: 2 for lines that cannot be imported, and if `--yes` is missing.
 */
export async function importCrontab(
  session: Session,
  file: string | undefined,
  options: ImportCrontabOptions,
): Promise<number> {
  if (file === undefined) {
    const hint = 'an export in a folder of that name is ./crontab';
    throw usageError(`give the crontab's file, or - for standard input (${hint})`);
  }
  const content = await readText(file, session.environment);
  const planned = await planImport(session, content, options);
  const isBlocked = planned.badLines.length > 0 && options.skipBad !== true;
  const isDone = options.yes === true && options.dryRun !== true && !isBlocked;
  const outcomes = isDone ? await carryOut(session, planned) : [];
  showImport(session, planned, outcomes, isDone);
  if (isBlocked) {
    const count = planned.badLines.length;
    const lines = `${count} ${count === 1 ? 'line' : 'lines'} cannot be imported`;
    session.aside(`svc: nothing was created; ${lines}. Correct them or use --skip-bad`);
    return exitCodes.usage;
  }
  if (!isDone && options.dryRun !== true && planned.steps.length > 0) {
    session.aside('svc: nothing was done; add --yes to create the tasks');
    return exitCodes.usage;
  }
  return outcomes.find(({ error }) => error !== null)?.exitCode ?? exitCodes.ok;
}

async function planImport(
  session: Session,
  content: string,
  options: ImportCrontabOptions,
): Promise<CrontabImport> {
  const timezone = checkZone(options.timezone);
  const postUrl = checkUrl(options.post);
  const { jobs, badLines, variables } = parseCrontab(content, options.system === true);
  const tasks = crontabTasks(jobs, { timezone, postUrl });
  const desired = parseTaskSet({ set: options.set, tasks }, await session.caller());
  const present = await presentTasks(session, desired.set);
  const { steps } = planOf(desired, present);
  const imported = jobs.flatMap((job, at): ImportedJob[] => {
    const task = desired.tasks[at];
    return task === undefined ? [] : [importedJob(job, task, desired.set, present)];
  });
  const rejected = new Map<DesiredTask, BadLine>();
  for (const { job, wanted, present: existing } of imported) {
    if (existing !== null) continue;
    const issue = rejectionOf({ kind: 'create', wanted }, session.clock.now());
    if (issue === null) continue;
    const text = `${job.schedule} ${job.command}`;
    rejected.set(wanted, { line: job.line, text, issue: `${issue}; correct the line` });
  }
  const importable = imported.filter(({ wanted }) => !rejected.has(wanted));
  const isCarriedOut = (step: Step): boolean =>
    step.kind === 'create'
      ? !rejected.has(step.wanted)
      : step.kind === 'cancel' && options.cancelMissing === true;
  return {
    set: desired.set,
    jobs: importable,
    badLines: [...badLines, ...rejected.values()].sort((a, b) => a.line - b.line),
    missing: steps.flatMap((step) => (step.kind === 'cancel' ? [step] : [])),
    steps: steps.filter(isCarriedOut),
    warnings: warningsOf(importable, variables, postUrl),
  };
}

function importedJob(
  job: CrontabJob,
  wanted: DesiredTask,
  set: string,
  tasks: readonly TaskRecord[],
): ImportedJob {
  const timezone = String(wanted.fields['timezone']);
  // Cron schedules do not depend on the anchor.
  const words = scheduleText({ kind: 'cron', expr: job.schedule, timezone, anchor: 0 });
  const present = tasks.find(
    ({ status, tags }) => status !== 'canceled' && nameIn(set, tags) === wanted.name,
  );
  return { job, wanted, words, present: present ?? null };
}

function warningsOf(
  jobs: readonly ImportedJob[],
  variables: readonly string[],
  postUrl: string | null,
): readonly string[] {
  const warnings: string[] = [];
  if (postUrl === null && jobs.some(({ present }) => present === null)) {
    warnings.push(
      'without --post, new tasks only log their command and are paused: replace the step "command" of each ' +
        '(svc tasks update <id> --payload @file), then run svc tasks resume <id>',
    );
  }
  if (variables.length > 0) {
    warnings.push(
      `${variables.join(', ')}: variables are not imported; set them where the commands run`,
    );
  }
  for (const { job, wanted, present } of jobs) {
    const zone = String(wanted.fields['timezone']);
    if (present === null || present.timezone === zone) continue;
    warnings.push(
      `line ${job.line}: its task keeps the time zone ${present.timezone}, not ${zone}; ` +
        `to change it: svc tasks update ${present.id} --zone ${zone}`,
    );
  }
  return warnings;
}

function checkZone(given: string | undefined): string {
  const name = given ?? new Intl.DateTimeFormat().resolvedOptions().timeZone;
  const zone = zoneOf(name);
  if (zone !== null) return zone.name;
  throw usageError(`--timezone: ${unknownZoneMessage(name)}`);
}

function checkUrl(given: string | undefined): string | null {
  if (given === undefined) return null;
  const url = URL.canParse(given) ? new URL(given) : null;
  if (url?.protocol === 'http:' || url?.protocol === 'https:') return given;
  throw usageError(`--post: must be an http or https URL, got ${given}`);
}
