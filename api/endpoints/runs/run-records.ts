import type { StepEnd } from '../../../domain/events/catalogue.ts';
import { compilePipeline } from '../../../domain/pipeline/compile.ts';
import { outputOf } from '../../../domain/pipeline/output.ts';
import { planOf } from '../../../domain/runs/run-plan.ts';
import { isJsonObject, type JsonObject } from '../../../domain/json.ts';
import { MAX_RESULT_BYTES, truncateString } from '../../../domain/pipeline/json-size.ts';
import { noWaits, type WaitsFor } from '../../../domain/runs/run-waits.ts';
import type { Cut } from '../../../projections/read-model.ts';
import type { RunDocument } from '../../../projections/views/runs.ts';
import { cutValue } from '../../../projections/cut-document.ts';
import { shownEvent, type EventSource } from '../../params/shown-event.ts';
import { pinnedTask, shownParams, type ParamsSource } from '../../params/shown-params.ts';
import { MAX_LISTED_BYTES } from '../listing.ts';

/** The most characters of an error in a list without `include_errors`. */
const MAX_SHORT_ERROR = 120;

/**
 * The parts of large runs that are not read for a list: results that do not fit into the output, and fields that a list
 * does not show.
 */
export const cutRuns: Cut = {
  maxBytes: MAX_LISTED_BYTES,
  values: [
    { path: ['steps', '*', 'result'], preview: true },
    { path: ['event', 'payload'], preview: false },
  ],
  omitted: ['attempts', 'log'],
};

/** The dependencies for showing a run, in addition to its document. */
export type RunSource = ParamsSource & EventSource;

/** A suspended step as clients see it; see the schema `RunWait`. */
type ShownWait = object & { readonly id: string };

export type ShownRun = Readonly<Record<string, unknown>> & { readonly waits: readonly ShownWait[] };

/** A run with its params and all steps of its pipeline; `plan` is null if its task can't be read. */
export async function showPlannedRun(source: RunSource, run: RunDocument): Promise<ShownRun> {
  const shown = await showRun(source, run);
  const task = await pinnedTask(source, run);
  if (task === null) return { ...shown, plan: null };
  const pipeline = compilePipeline(task.definition.payload as JsonObject);
  const { state, attempt, steps, reused = 0, waits = noWaits } = run;
  return { ...shown, plan: planOf(pipeline, { state, attempt, steps, reused, waits }) };
}

/** A run with its params, without the fields that only its worker needs. */
export async function showRun(source: RunSource, run: RunDocument): Promise<ShownRun> {
  const { listed: _listed, revision: _revision, interruptions: _interruptions, ...known } = run;
  const { reused: _reused, ...shown } = known;
  const params = await shownParams(source, run);
  const event = await shownEvent(source, run);
  const made = { params, event, output: outputOfRun(run), waits: showWaits(run) };
  return { ...shown, ...causeOf(run), ...made };
}

/** The suspended steps, without the parts that only workers need, such as token hashes and a job's arguments. */
function showWaits({ waits = [] }: RunDocument): readonly ShownWait[] {
  return waits.map(({ wait_id: id, step, waits_for, since, until, resumed, progress }) => {
    const wait = { id, step, since, until, resumed_by: resumed?.by.kind ?? null };
    return { ...wait, ...awaited(waits_for), ...(progress === undefined ? {} : { progress }) };
  });
}

/** The part of a step's wait that clients see. */
function awaited(waitsFor: WaitsFor): object {
  const { kind } = waitsFor;
  switch (waitsFor.kind) {
    case 'timer':
    case 'callback':
      return { kind };
    case 'event':
      return { kind, topic: waitsFor.topic, if: waitsFor.if ?? null };
    case 'approval':
      return { kind, message: waitsFor.message, approvers: waitsFor.approvers ?? null };
    case 'run':
      return { kind, run_id: waitsFor.run_id, task_id: waitsFor.task_id };
    case 'job':
      return { kind, tool: waitsFor.tool };
  }
}

/** Defaults of the fields that documents leave out. */
const causeOf = ({ depth = 0, parent_run_id: parent }: RunDocument): object => {
  return { depth, parent_run_id: parent ?? null };
};

/** The output is derived from the steps. A stored output would repeat them. */
function outputOfRun({ steps, output }: RunDocument, most?: number): object | null {
  return output === null ? null : outputOf(steps as unknown as readonly StepEnd[], output, most);
}

/**
 * A run in a list. Its output, params and event payload are cut to {@link MAX_LISTED_BYTES}.
 * @param wholeErrors if false, the error is shortened
 */
export async function showInList(
  source: RunSource,
  run: RunDocument,
  wholeErrors: boolean,
): Promise<object> {
  const { attempts: _attempts, steps: _steps, log: _log, ...shown } = run;
  const { listed: _listed, revision: _revision, interruptions: _interruptions, ...known } = shown;
  const { reused: _reused, ...bare } = known;
  const output = outputOfRun(run, MAX_LISTED_BYTES);
  // A cut result would otherwise look as if it had been truncated when the run ended.
  const shownOutput = output && isCut(run) ? { ...output, truncated: true } : output;
  const params = await shownParams(source, run);
  const item = {
    ...bare,
    ...causeOf(run),
    params: params && cutValue(params, MAX_LISTED_BYTES),
    event: await shownEvent(source, run, MAX_LISTED_BYTES),
    output: shownOutput,
    waits: showWaits(run),
  };
  return wholeErrors ? item : { ...item, error: shorten(run.error) };
}

/** Whether {@link cutRuns} has cut a result: those truncated when their step ended had more bytes. */
function isCut({ steps }: RunDocument): boolean {
  return steps.some(({ result }) => {
    if (!isJsonObject(result) || result['truncated'] !== true) return false;
    const { size_bytes } = result;
    return typeof size_bytes === 'number' && size_bytes <= MAX_RESULT_BYTES;
  });
}

/** An error as lists show it: its first line, up to {@link MAX_SHORT_ERROR} characters. */
export function shorten(error: string | null): string | null {
  return error === null ? null : truncateString(error.split(/\r?\n/, 1)[0] ?? '', MAX_SHORT_ERROR);
}
