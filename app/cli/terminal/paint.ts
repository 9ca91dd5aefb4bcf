import type { Environment } from '../../configuration/setting-readers.ts';
import type { Screen } from '../calling/surroundings.ts';

/** How texts are told apart by colour; each gives its text as it is where there are no colours. */
export interface Paint {
  readonly good: (text: string) => string;
  readonly bad: (text: string) => string;
  readonly warning: (text: string) => string;
  /** What matters less. */
  readonly faint: (text: string) => string;
  readonly strong: (text: string) => string;
}

/** Foreground colours of ECMA-48, which every terminal knows. */
const codes = { good: 32, bad: 31, warning: 33, faint: 2, strong: 1 } as const;

/**
 * Colours on a terminal alone; `NO_COLOR` (https://no-color.org), `TERM=dumb` and `--no-color` turn them off.
 * @param wanted what `--no-color` leaves true
 */
export function paintFor(screen: Screen, env: Environment, wanted: boolean): Paint {
  const plain = (env['NO_COLOR'] ?? '') !== '' || env['TERM'] === 'dumb';
  const coloured = wanted && screen.isTerminal && !plain;
  const by = (code: number) => (text: string) =>
    coloured && text !== '' ? `\u001b[${code}m${text}\u001b[0m` : text;
  return {
    good: by(codes.good),
    bad: by(codes.bad),
    warning: by(codes.warning),
    faint: by(codes.faint),
    strong: by(codes.strong),
  };
}

/** A state of a task, a run, a delivery or a check, in the colour that it is looked for by. */
export function paintState(paint: Paint, state: string, text = state): string {
  if (/^(succeeded|delivered|healthy|ready|active)$/.test(state)) return paint.good(text);
  if (/^(failed|unhealthy|not_ready)$/.test(state)) return paint.bad(text);
  if (/^(retrying|running|degraded|paused)$/.test(state)) return paint.warning(text);
  if (/^(canceled|skipped)$/.test(state)) return paint.faint(text);
  return text;
}

/**
 * A text of the service without characters that steer a terminal: whoever names a task must not be able to move the
 * cursor of whoever looks at it.
 */
export function printable(text: string): string {
  // Control characters but tab and line feed, and marks that turn the direction of text.
  return text.replaceAll(/(?![\t\n])[\p{Cc}\p{Bidi_Control}]/gu, '�');
}
