import type { Clock } from '../../../domain/clock.ts';
import { writeJson } from '../../../domain/exact-numbers.ts';
import { paintFor, printable, type Paint } from '../terminal/paint.ts';
import { table, type Cell, type Column } from '../terminal/table.ts';
import { shortTime } from '../terminal/units.ts';
import { isObject } from '../terminal/values.ts';
import { Client, type ServiceRequest } from './client.ts';
import { CommandError, exitCodes, FollowEndedError } from './command-errors.ts';
import { clientAccess } from './credentials.ts';
import type { Done } from './records.ts';
import type { CliEnvironment } from './cli-environment.ts';
import { tokenCache } from './token-cache.ts';

/** The options that every command takes. */
export interface GlobalOptions {
  readonly url?: string;
  readonly json?: boolean;
  /** False with `--no-color`. */
  readonly color: boolean;
  readonly reason?: string;
  readonly namespace?: string;
}

/** A column of a table of records. */
export interface RecordColumn<T> extends Column {
  readonly cell: (record: T) => Cell;
}

/** One call of the command line: its client and its output. */
export class Session {
  readonly environment: CliEnvironment;
  readonly clock: Clock;
  readonly paint: Paint;
  readonly json: boolean;
  /** The value of `--namespace`. */
  readonly namespace: string | undefined;
  /** The value of `--reason`. */
  readonly reason: string | undefined;
  readonly client: Client;
  /** The value of `--url`. */
  readonly urlOption: string | undefined;

  /** @param url of the service */
  constructor(environment: CliEnvironment, options: GlobalOptions, url: string) {
    const { env, clock, signal, out } = environment;
    this.environment = environment;
    this.clock = clock;
    this.paint = paintFor(out, env, options.color);
    this.json = options.json ?? false;
    this.reason = options.reason;
    this.namespace = options.namespace;
    this.urlOption = options.url;
    const access = { ...clientAccess(env), ...tokenCache(env, url, clock) };
    const { reason, namespace } = options;
    this.client = new Client({ url, access, clock, signal, reason, namespace });
  }

  /**
   * Follows something until it ends.
   * @throws FollowEndedError when Ctrl-C ends it; the errors of `work`
   */
  async following<T>(work: () => Promise<T>): Promise<T> {
    try {
      return await work();
    } catch (error) {
      throw this.environment.signal.aborted ? new FollowEndedError(error) : error;
    }
  }

  /**
   * The id of the calling agent, from its token.
   * @throws CommandError for a token without it; the client's error if it gets no token
   */
  async caller(): Promise<string> {
    const [, claims = ''] = (await this.client.token()).split('.');
    try {
      const parsed: unknown = JSON.parse(Buffer.from(claims, 'base64url').toString());
      if (isObject(parsed) && typeof parsed['sub'] === 'string') return parsed['sub'];
    } catch (error) {
      if (!(error instanceof SyntaxError)) throw error;
    }
    const message = 'the token is not from this service: it names no agent';
    throw new CommandError(exitCodes.notAuthorized, message);
  }

  /** Prints a line to standard output. */
  line(text = ''): void {
    this.environment.out.write(`${text}\n`);
  }

  /** Prints a line to standard error: progress, hints and warnings. */
  aside(text: string): void {
    this.environment.err.write(`${text}\n`);
  }

  /** Prints the result: as JSON with `--json`, otherwise as `human` formats it. */
  answer(value: unknown, human: () => string): void {
    this.line(this.json ? writeJson(value, 2) : human());
  }

  /** Calls the service and prints the response, as {@link answer} does. */
  async show<T>(request: ServiceRequest<T>, human: (value: T) => string): Promise<void> {
    const value = await this.client.call(request);
    this.answer(value, () => human(value));
  }

  /** Calls the service and prints the message of the response and, if it has one, the next run. */
  done<T extends Pick<Done, 'message' | 'details'>>(request: ServiceRequest<T>): Promise<void> {
    return this.show(request, ({ message, details }) => {
      const next = details['next_run_at'];
      return typeof next === 'string' ? `${message}; next run ${shortTime(next)}` : message;
    });
  }

  /** Prints one item of a stream on a line: as JSON with `--json`, otherwise as `human` formats it. */
  item(value: unknown, human: () => string): void {
    this.line(this.json ? writeJson(value) : human());
  }

  /** A table of records, or `none` if there are none. */
  table<T>(columns: readonly RecordColumn<T>[], records: readonly T[], none: string): string {
    if (records.length === 0) return this.paint.faint(none);
    const rows = records.map((record) =>
      columns.map(({ cell }) => {
        const value = cell(record);
        return typeof value === 'string' ? printable(value) : value;
      }),
    );
    return table(columns, rows);
  }

  /** Names and values, a line each, without those that are null or empty. */
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
