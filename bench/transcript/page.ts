import type { Typed } from './terminal.ts';

/** Lines of an output that are shown from its beginning and from its end, where it is not said otherwise. */
const HEAD = 14;
const TAIL = 4;
/** Longer lines are cut. */
const WIDTH = 170;
/** Commands that take longer have their time beside them. Seconds. */
const WORTH_SAYING = 1;

/** What `timeout` ends with where it has ended something. */
const TIMED_OUT = 124;

/** A page of what was typed and what came of it. */
export class Page {
  readonly #parts: string[];

  constructor(beginning: string) {
    this.#parts = [beginning.trim()];
  }

  heading(text: string): void {
    this.#parts.push(`## ${text}`);
  }

  say(text: string): void {
    this.#parts.push(text.trim());
  }

  /** @param lines of each command that are shown from its beginning and its end */
  show(
    typed: readonly Typed[],
    lines: { readonly head?: number; readonly tail?: number } = {},
  ): void {
    const shown = typed.map((each) => shownOf(each, lines.head ?? HEAD, lines.tail ?? TAIL));
    this.#parts.push(`\`\`\`console\n${shown.join('\n')}\n\`\`\``);
  }

  toString(): string {
    return `${this.#parts.join('\n\n')}\n`;
  }
}

function shownOf({ command, output, seconds, code }: Typed, head: number, tail: number): string {
  const all = output.trimEnd().split('\n');
  const isLong = all.length > head + tail + 1;
  const left = (all.length - head - tail).toLocaleString('en');
  const some = isLong ? [...all.slice(0, head), `… ${left} lines`, ...all.slice(-tail)] : all;
  const lines = some.map((line) => (line.length > WIDTH ? `${line.slice(0, WIDTH - 1)}…` : line));
  const took = seconds >= WORTH_SAYING ? `  # ${seconds.toFixed(1)} s` : '';
  const ended = code === 0 || code === null || code === TIMED_OUT ? [] : [`(exit code ${code})`];
  return [`$ ${command}${took}`, ...lines.filter((line) => line !== ''), ...ended].join('\n');
}
