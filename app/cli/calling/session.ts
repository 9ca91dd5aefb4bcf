import { writeJson } from '../../../domain/exact-numbers.ts';
import type { Clock } from '../../../domain/clock.ts';
import { table, type Column } from '../terminal/table.ts';
import { Client } from './client.ts';
import { CommandFault, exitCodes, FollowingEnded } from './faults.ts';
import { paintFor, printable, type Paint } from '../terminal/paint.ts';
import { keptTokens } from './kept-tokens.ts';
import { accessOf } from './sign-in.ts';
import type { Surroundings } from './surroundings.ts';
import { isObject } from '../terminal/values.ts';

/** The options that every command takes. */
export interface GlobalOptions {
  readonly url?: string;
  readonly json?: boolean;
  /** What `--no-color` makes false. */
  readonly color: boolean;
  readonly reason?: string;
}

/** One call of the command line: how it writes, and the client it calls with. */
export class Session {
  readonly surroundings: Surroundings;
  readonly clock: Clock;
  readonly paint: Paint;
  readonly json: boolean;
  /** Why the caller does this, in its own words. */
  readonly reason: string | undefined;
  readonly client: Client;
  /** What `--url` says. */
  readonly urlOption: string | undefined;

  /** @param url where the service is */
  constructor(surroundings: Surroundings, options: GlobalOptions, url: string) {
    const { env, clock, signal, out } = surroundings;
    this.surroundings = surroundings;
    this.clock = clock;
    this.paint = paintFor(out, env, options.color);
    this.json = options.json ?? false;
    this.reason = options.reason;
    this.urlOption = options.url;
    const access = { ...accessOf(env), ...keptTokens(env, url, clock) };
    this.client = new Client({ url, access, clock, signal, reason: options.reason });
  }

  /**
   * Follows something until that ends.
   * @throws FollowingEnded where Ctrl-C ends it; all that `work` throws
   */
  async following<T>(work: () => Promise<T>): Promise<T> {
    try {
      return await work();
    } catch (error) {
      throw this.surroundings.signal.aborted ? new FollowingEnded(error) : error;
    }
  }

  /**
   * The id of the agent that calls, as its token says.
   * @throws CommandFault for a token that does not say it; what the client throws where it gets none
   */
  async caller(): Promise<string> {
    const [, claims = ''] = (await this.client.token()).split('.');
    try {
      const said: unknown = JSON.parse(Buffer.from(claims, 'base64url').toString());
      if (isObject(said) && typeof said['sub'] === 'string') return said['sub'];
    } catch (error) {
      if (!(error instanceof SyntaxError)) throw error;
    }
    const why = 'it does not say whose it is';
    throw new CommandFault(exitCodes.notAuthorized, `the token is not one of the service: ${why}`);
  }

  /** A line of the answer. */
  line(text = ''): void {
    this.surroundings.out.write(`${text}\n`);
  }

  /** A line beside the answer, for the person: what is going on, what to look at. */
  aside(text: string): void {
    this.surroundings.err.write(`${text}\n`);
  }

  /** The answer: as JSON where that is asked for, and else as `human` writes it. */
  answer(value: unknown, human: () => string): void {
    this.line(this.json ? writeJson(value, 2) : human());
  }

  /** One JSON object on one line, for what goes on and on. */
  jsonLine(value: unknown): void {
    this.line(writeJson(value));
  }

  /** Rows under titles; says so when there are none. */
  table(columns: readonly Column[], rows: Parameters<typeof table>[1], none: string): string {
    if (rows.length === 0) return this.paint.faint(none);
    const shown = rows.map((row) =>
      row.map((cell) => (typeof cell === 'string' ? printable(cell) : cell)),
    );
    return table(columns, shown);
  }

  /** Names and values under each other; what is null or empty is left out. */
  fields(values: readonly (readonly [name: string, value: string | number | null])[]): string {
    const given = values.filter(([, value]) => value !== null && value !== '');
    const width = Math.max(...given.map(([name]) => name.length));
    return given
      .map(([name, value]) => {
        const text = printable(String(value)).replaceAll('\n', `\n${' '.repeat(width + 2)}`);
        return `${this.paint.faint(name.padEnd(width))}  ${text}`;
      })
      .join('\n');
  }
}
