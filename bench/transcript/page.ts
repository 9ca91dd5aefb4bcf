import type { Typed } from './terminal.ts';

/** Lines of an output that are shown from its start and end by default. */
const HEAD_LINES = 14;
const TAIL_LINES = 4;
/** Longer lines are cut. */
const MAX_LINE_LENGTH = 170;
/** Commands that take longer show their time. Seconds. */
const MIN_SHOWN_SECONDS = 1;

/** The exit code of `timeout` when it ended something. */
const TIMED_OUT = 124;

/** A page of commands and their outputs. */
export class Page {
  readonly #parts: string[];

  constructor(introduction: string) {
    this.#parts = [introduction.trim()];
  }

  heading(text: string): void {
    this.#parts.push(`## ${text}`);
  }

  say(text: string): void {
    this.#parts.push(text.trim());
  }

  /** @param lines of each output that are shown from its start and end */
  show(
    typed: readonly Typed[],
    lines: { readonly head?: number; readonly tail?: number } = {},
  ): void {
    const shown = typed.map((each) =>
      shownOf(each, lines.head ?? HEAD_LINES, lines.tail ?? TAIL_LINES),
    );
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
  const lines = some.map((line) =>
    line.length > MAX_LINE_LENGTH ? `${line.slice(0, MAX_LINE_LENGTH - 1)}…` : line,
  );
  const took = seconds >= MIN_SHOWN_SECONDS ? `  # ${seconds.toFixed(1)} s` : '';
  const ended = code === 0 || code === null || code === TIMED_OUT ? [] : [`(exit code ${code})`];
  return [`$ ${command}${took}`, ...lines.filter((line) => line !== ''), ...ended].join('\n');
}
