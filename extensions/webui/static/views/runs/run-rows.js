// The rows of a run's waterfall: one for the run, and one for each step of its pipeline.

/**
 * A bar of a row.
 * @typedef {{from: number, to: number, state: string, text: string}} Bar instants in milliseconds
 */

/**
 * The steps of a run in the order of its pipeline, with their executions in this run. Parts of a group and items of a
 * step are one level deeper. Results reused from another run have no bar, as they are older than this run.
 * @param {object} run as the service shows it
 * @param {number} now in milliseconds: bars that are still open end there
 * @returns {{step: string, uses: string | null, level: number, state: string, bars: Bar[], took: number | null}[]}
 *   `took` in milliseconds, of the last execution
 */
export function stepRows(run, now) {
  const { attempts, finished_at: end } = run;
  const plan = run.plan ?? unplanned(run);
  const groups = new Map(plan.map((each) => [each.step, each]));
  const rows = plan.map((planned) => {
    const { step, uses, group, state } = planned;
    const ends =
      state === 'reused' ? [] : run.steps.filter((each) => each.step === step && isOwn(run, each));
    const bars = ends.map((each) => ({
      from: Date.parse(each.started_at),
      to: Date.parse(each.finished_at),
      state: each.status,
      text: `attempt ${each.attempt}: ${each.status}`,
    }));
    const wait = openWait(run, step);
    const last = attempts.at(-1);
    if (wait !== undefined) {
      bars.push({ from: Date.parse(wait.since), to: now, state: 'waiting', text: 'waiting' });
    } else if (state === 'running' && last !== undefined) {
      const from = startOf(run, planned, groups);
      bars.push({ from, to: now, state: 'running', text: `attempt ${last.attempt}: running` });
    }
    const shown = end !== null && state === 'pending' ? 'did_not_end' : state;
    const open = bars.at(-1);
    return {
      step,
      uses,
      level: levelOf(step, group),
      state: shown,
      bars,
      took: open === undefined || shown === 'skipped' ? null : open.to - open.from,
    };
  });
  for (const row of rows) if (row.uses === null) widen(row, rows, groups);
  return rows;
}

/**
 * Widens the bar of a group to start with its first part. The group's own record only says when its last execution
 * began.
 */
function widen(row, rows, planned) {
  const last = row.bars.at(-1);
  if (last === undefined) return;
  const parts = rows.filter(({ step }) => planned.get(step).group === row.step);
  const from = parts.flatMap(({ bars }) => bars.slice(-1).map((bar) => bar.from));
  last.from = Math.min(last.from, ...from);
  row.took = last.to - last.from;
}

/** The attempts of a run as bars, with the time before the first one. */
export function runBars(run, now) {
  const bars = run.attempts.map(({ attempt, started_at: from, finished_at: to, outcome }) => ({
    from: Date.parse(from),
    to: to === null ? now : Date.parse(to),
    state: outcome ?? (run.state === 'waiting' ? 'waiting' : 'running'),
    text: `attempt ${attempt}: ${outcome ?? run.state}`,
  }));
  if (bars.length > 0 || run.state === 'skipped') return bars;
  const to = run.finished_at === null ? now : Date.parse(run.finished_at);
  return [{ from: Date.parse(run.queued_at), to, state: 'queued', text: 'queued' }];
}

/** The steps of a run whose pipeline cannot be read: the steps that have ended or wait. */
function unplanned({ steps, waits }) {
  const names = new Set([...steps, ...waits].map(({ step }) => step));
  return [...names].map((step) => {
    const end = steps.findLast((each) => each.step === step);
    const state = waits.some((each) => each.step === step && each.resumed_by === null)
      ? 'waiting'
      : (end?.status ?? 'pending');
    return { step, uses: null, group: null, needs: [], state };
  });
}

/** Whether this run executed a step itself: results that it took over began before it was requested. */
export const isOwn = ({ queued_at: queued, retry_of: of }, { started_at: at }) =>
  of === null || Date.parse(at) >= Date.parse(queued);

const openWait = ({ waits }, name) =>
  waits.find(({ step, resumed_by: by }) => step === name && by === null);

/**
 * When a step started. The log does not record it: a step starts once the steps before it have ended in this attempt.
 */
function startOf(run, { needs, group }, groups) {
  const before = group === null ? needs : (groups.get(group)?.needs ?? []);
  const ends = run.steps
    .filter(({ step }) => before.includes(step))
    .map(({ finished_at: at }) => Date.parse(at));
  return Math.max(Date.parse(run.attempts.at(-1).started_at), ...ends);
}

const levelOf = (step, group) => (group === null ? 0 : 1) + (step.endsWith(']') ? 1 : 0);

/** The step that is chosen at first: the one that failed, or `''` for the whole run. */
export function firstStep(run) {
  if (run.state !== 'failed') return '';
  const failed = run.attempts.at(-1)?.step ?? '';
  return run.steps.some(({ step }) => step === failed) ? failed : '';
}
