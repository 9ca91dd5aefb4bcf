import type { StepEnd } from '../../../domain/events/catalogue.ts';
import { outputOf } from '../../../domain/pipeline/output.ts';
import { isJsonObject } from '../../../domain/json.ts';
import { MAX_RESULT_BYTES, truncateString } from '../../../domain/pipeline/json-size.ts';
import type { Cut } from '../../../projections/read-model.ts';
import type { RunDocument } from '../../../projections/views/runs.ts';
import { MAX_LISTED_BYTES } from '../listing.ts';

/** Characters of an error's first line in a list without `include_errors`. */
const MAX_SHORT_ERROR = 120;

/** What is not read of large runs for a list: results that do not fit into the output, and fields that it lacks. */
export const cutRuns: Cut = {
  maxBytes: MAX_LISTED_BYTES,
  values: [{ path: ['steps', '*', 'result'], preview: true }],
  omitted: ['attempts', 'log'],
};

/** A run without the fields that only its worker needs. */
export function showRun(run: RunDocument): object {
  const { listed: _listed, revision: _revision, interruptions: _interruptions, ...shown } = run;
  return { ...shown, depth: run.depth ?? 0, output: outputOfRun(run) };
}

/** The output is derived from the steps, which it would repeat if it were stored. */
function outputOfRun({ steps, output }: RunDocument, most?: number): object | null {
  return output === null ? null : outputOf(steps as unknown as readonly StepEnd[], output, most);
}

/** A run in a list, its output cut to {@link MAX_LISTED_BYTES}. @param wholeErrors otherwise the error is shortened */
export function showInList(run: RunDocument, wholeErrors: boolean): object {
  const { attempts: _attempts, steps: _steps, log: _log, ...shown } = run;
  const { listed: _listed, revision: _revision, interruptions: _interruptions, ...bare } = shown;
  const output = outputOfRun(run, MAX_LISTED_BYTES);
  // A cut result would otherwise look as if it had been truncated when the run ended.
  const shownOutput = output && isCut(run) ? { ...output, truncated: true } : output;
  const item = { ...bare, depth: run.depth ?? 0, output: shownOutput };
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

function shorten(error: string | null): string | null {
  return error === null ? null : truncateString(error.split(/\r?\n/, 1)[0] ?? '', MAX_SHORT_ERROR);
}
