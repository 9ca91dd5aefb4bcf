import type { Environment } from '../../configuration/setting-readers.ts';
import type { OutputStream } from '../calling/cli-environment.ts';

/** Foreground colours and styles of ECMA-48. */
const codes = { good: 32, bad: 31, warning: 33, faint: 2, strong: 1 } as const;

/** Colours a string by its meaning; each returns it unchanged without colours. */
export type Paint = Readonly<Record<keyof typeof codes, (text: string) => string>>;

/**
 * Colours for terminals. `NO_COLOR` (https://no-color.org), `TERM=dumb` and `--no-color` turn them off.
 * @param wanted false with `--no-color`
 */
export function paintFor(screen: OutputStream, env: Environment, wanted: boolean): Paint {
  const isPlain = (env['NO_COLOR'] ?? '') !== '' || env['TERM'] === 'dumb';
  const isColoured = wanted && screen.isTerminal && !isPlain;
  const by = (code: number) => (text: string) =>
    isColoured && text !== '' ? `\u001b[${code}m${text}\u001b[0m` : text;
  const { good, bad, warning, faint, strong } = codes;
  return {
    good: by(good),
    bad: by(bad),
    warning: by(warning),
    faint: by(faint),
    strong: by(strong),
  };
}

/** Colours the state of a task, run, delivery or check. */
export function paintState(paint: Paint, state: string, text = state): string {
  if (/^(succeeded|approved|delivered|healthy|ready|active)$/.test(state)) return paint.good(text);
  if (/^(failed|rejected|unhealthy|not_ready)$/.test(state)) return paint.bad(text);
  if (/^(retrying|running|waiting|pending|degraded|paused)$/.test(state))
    return paint.warning(text);
  if (/^(canceled|expired|skipped)$/.test(state)) return paint.faint(text);
  return text;
}

/** A column's `paint` for states. */
export const statePainter =
  (paint: Paint) =>
  (padded: string, state: string): string =>
    paintState(paint, state, padded);

/**
 * Replaces control characters (except tab and line feed) and marks that change the direction of text. Otherwise a task's
 * title could move the cursor of another user's terminal.
 */
export function printable(text: string): string {
  return text.replaceAll(/(?![\t\n])[\p{Cc}\p{Bidi_Control}]/gu, '�');
}
