import type { StepEnd } from '../../../domain/events/catalogue.ts';
import { outputOf } from '../../../domain/pipeline/output.ts';
import { isJsonObject } from '../../../domain/json.ts';
import { MAX_RESULT_BYTES, start } from '../../../domain/pipeline/size.ts';
import type { Cut } from '../../../projections/read-model.ts';
import type { RunDocument } from '../../../projections/views/runs.ts';
import { MOST_LISTED } from '../listing.ts';

/** An error in a list that does not ask for errors is cut to its first line and so many characters. */
const SHORT_ERROR = 120;

/**
 * What of a large run is not read for a list: results that its output has no room for, and what the list leaves out
 * anyway.
 */
export const cutRuns: Cut = {
  over: MOST_LISTED,
  values: [{ path: ['steps', '*', 'result'], preview: true }],
  without: ['attempts', 'log'],
};

/** A run without what only its worker needs. */
export function showRun(run: RunDocument): object {
  const { listed: _listed, revision: _revision, interruptions: _interruptions, ...shown } = run;
  return { ...shown, output: outputOfRun(run) };
}

/** The output is folded from the steps, which it would else repeat. */
function outputOfRun({ steps, output }: RunDocument, most?: number): object | null {
  return output === null ? null : outputOf(steps as unknown as readonly StepEnd[], output, most);
}

/** A run in a list, its output cut to {@link MOST_LISTED} bytes. @param wholeErrors else the error is cut short */
export function showInList(run: RunDocument, wholeErrors: boolean): object {
  const { attempts: _attempts, steps: _steps, log: _log, ...shown } = run;
  const { listed: _listed, revision: _revision, interruptions: _interruptions, ...bare } = shown;
  const output = outputOfRun(run, MOST_LISTED);
  // What was cut before it came here would else look like a result that was cut when the run ended.
  const item = { ...bare, output: output && isCut(run) ? { ...output, truncated: true } : output };
  return wholeErrors ? item : { ...item, error: shorten(run.error) };
}

/** Whether {@link cutRuns} has cut a result: those that were cut when their step ended had more bytes. */
function isCut({ steps }: RunDocument): boolean {
  return steps.some(({ result }) => {
    if (!isJsonObject(result) || result['truncated'] !== true) return false;
    const { size_bytes } = result;
    return typeof size_bytes === 'number' && size_bytes <= MAX_RESULT_BYTES;
  });
}

function shorten(error: string | null): string | null {
  return error === null ? null : start(error.split(/\r?\n/, 1)[0] ?? '', SHORT_ERROR);
}
