import type { StepEnd } from '../../../domain/events/catalogue.ts';
import { outputOf } from '../../../domain/pipeline/output.ts';
import { start } from '../../../domain/pipeline/size.ts';
import type { RunDocument } from '../../../projections/views/runs.ts';

/** An error in a list that does not ask for errors is cut to its first line and so many characters. */
const SHORT_ERROR = 120;

/** Bytes of an output in a list: two hundred whole ones may be more than one text can hold. */
const LISTED_OUTPUT = 64 * 1024;

/** A run without what only its worker needs. */
export function showRun(run: RunDocument): object {
  const { listed: _listed, revision: _revision, interruptions: _interruptions, ...shown } = run;
  return { ...shown, output: outputOfRun(run) };
}

/** The output is folded from the steps, which it would else repeat. */
function outputOfRun({ steps, output }: RunDocument, most?: number): object | null {
  return output === null ? null : outputOf(steps as unknown as readonly StepEnd[], output, most);
}

/** A run in a list, its output cut to {@link LISTED_OUTPUT}. @param wholeErrors else the error is cut short */
export function showInList(run: RunDocument, wholeErrors: boolean): object {
  const { attempts: _attempts, steps: _steps, log: _log, ...shown } = run;
  const { listed: _listed, revision: _revision, interruptions: _interruptions, ...bare } = shown;
  const item = { ...bare, output: outputOfRun(run, LISTED_OUTPUT) };
  return wholeErrors ? item : { ...item, error: shorten(run.error) };
}

function shorten(error: string | null): string | null {
  return error === null ? null : start(error.split(/\r?\n/, 1)[0] ?? '', SHORT_ERROR);
}
